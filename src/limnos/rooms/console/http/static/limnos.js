// SPDX-License-Identifier: Apache-2.0
// The console's script. Every link and form works without it. It inserts only parts that the server has rendered.
const policy = window.trustedTypes?.createPolicy("limnos", { createHTML: (text) => text });
const html = (text) => policy ? policy.createHTML(text) : text;
const $ = (selector, root = document) => root.querySelector(selector);
const all = (selector, root = document) => [...root.querySelectorAll(selector)];

async function part(address, signal) {
  const answer = await fetch(address, { headers: { "X-Limnos-Part": "1" }, redirect: "error", signal });
  if (!answer.ok) throw new Error(String(answer.status));
  const holder = document.createElement("template");
  holder.innerHTML = html(await answer.text());
  return holder.content;
}

function leave(error) {
  // A part that is redirected leads to the sign-in page: the whole page goes there.
  if (error.name !== "AbortError") location.reload();
}

// Tree: open and close branches, go on to the next children.
document.addEventListener("click", async (event) => {
  const turn = event.target.closest(".turn");
  if (turn) {
    const item = turn.closest("li");
    let list = $(":scope > ul", item);
    const open = turn.getAttribute("aria-expanded") !== "true";
    if (open && !list) {
      try {
        const content = await part(turn.dataset.branch);
        list = document.createElement("ul");
        list.append(content);
        item.append(list);
      } catch (error) { return leave(error); }
    }
    if (list) list.hidden = !open;
    turn.setAttribute("aria-expanded", String(open));
    return;
  }
  const next = event.target.closest("a[data-next]");
  if (next && !event.ctrlKey && !event.metaKey && !event.shiftKey) {
    event.preventDefault();
    try {
      const content = await part(next.dataset.next);
      const place = next.closest("li, .more");
      const body = next.dataset.into ? $(next.dataset.into) : null;
      if (body) {
        const rows = all("tr", content);
        const more = $(".more", content);
        body.append(...rows);
        if (more && body.rows.length < 1000) place.replaceWith(more); else if (!more) place.remove();
        else { next.removeAttribute("data-next"); next.textContent = "Next page"; next.href = $("a", more).href; }
        filterRows();
        rows[0]?.querySelector("a")?.focus();
      } else {
        const first = content.firstElementChild;
        place.replaceWith(content);
        $("a", first)?.focus();
      }
    } catch (error) { leave(error); }
  }
});

// Tree: arrow keys.
document.addEventListener("keydown", (event) => {
  const item = event.target.closest?.(".tree .item");
  if (!item || !event.key.startsWith("Arrow")) return;
  const shown = all(".tree .item a").filter((link) => link.offsetParent);
  const at = shown.indexOf($("a", item));
  const turn = $(".turn", item);
  if (event.key === "ArrowDown") shown[at + 1]?.focus();
  else if (event.key === "ArrowUp") shown[at - 1]?.focus();
  else if (event.key === "ArrowRight" && turn?.getAttribute("aria-expanded") !== "true") turn?.click();
  else if (event.key === "ArrowLeft") {
    if (turn?.getAttribute("aria-expanded") === "true") turn.click();
    else $("a", item.closest("ul").closest("li") ?? item)?.focus();
  } else return;
  event.preventDefault();
});

// Tabs: the current one is in view where they do not fit.
for (const tab of all(".tabs [aria-current]")) {
  const bar = tab.parentElement;
  bar.scrollLeft = tab.offsetLeft - bar.offsetLeft - (bar.clientWidth - tab.offsetWidth) / 2;
}

// Filter of the rows on the page.
function filterRows() {
  for (const input of all("input[data-filter]")) {
    const words = input.value.toLowerCase().trim();
    let count = 0;
    for (const row of all(`${input.dataset.filter} tr`)) {
      const fits = !words || row.textContent.toLowerCase().includes(words);
      row.hidden = !fits;
      if (fits) count += 1;
    }
    const told = $(input.dataset.count);
    if (told) told.textContent = words ? `${count} of ${told.dataset.whole}` : told.dataset.whole;
  }
}
document.addEventListener("input", (event) => { if (event.target.matches("[data-filter]")) filterRows(); });

// Theme: light, dark, as the system.
const isDark = matchMedia("(prefers-color-scheme: dark)").matches;
const themes = isDark ? ["", "light", "dark"] : ["", "dark", "light"]; // the first click changes the colours
function showTheme() {
  let theme = "";
  try { theme = localStorage.getItem("limnos-theme") ?? ""; } catch { /* no storage */ }
  if (theme) document.documentElement.dataset.theme = theme; else delete document.documentElement.dataset.theme;
  const button = $("#theme");
  if (button) { button.hidden = false; button.title = `Colours: ${theme || "as the system"}`; }
}
showTheme();
document.addEventListener("click", async (event) => {
  if (event.target.closest("#theme")) {
    const now = document.documentElement.dataset.theme ?? "";
    try { localStorage.setItem("limnos-theme", themes[(themes.indexOf(now) + 1) % 3]); } catch { /* no storage */ }
    showTheme();
    return;
  }
  const copy = event.target.closest("[data-copy]");
  if (copy) {
    const source = $(copy.dataset.copy);
    await navigator.clipboard?.writeText(source.textContent.trim());
    const label = $("span", copy) ?? copy;
    const before = label.textContent;
    label.textContent = "Copied";
    setTimeout(() => { label.textContent = before; }, 1500);
    return;
  }
  const opens = event.target.closest("[data-dialog]");
  if (opens) { event.preventDefault(); $(opens.dataset.dialog)?.showModal(); return; }
  if (event.target.closest("[data-close]")) event.target.closest("dialog")?.close();
});
for (const shown of all("[data-needs-script]")) shown.hidden = false;

// Keys: / search, Ctrl-K palette, g h home, ? help.
let before = "";
document.addEventListener("keydown", (event) => {
  const typing = event.target.matches?.("input, textarea, select");
  if (event.key === "k" && (event.ctrlKey || event.metaKey)) {
    const palette = $("#palette");
    if (palette && !palette.open) { event.preventDefault(); palette.showModal(); $("#palette-words").select(); }
    return;
  }
  if (event.key === "/" && !typing) {
    const search = $("#search");
    if (search) { event.preventDefault(); search.focus(); search.select(); }
    return;
  }
  if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
  if (before === "g") {
    const link = $(`[data-key="g ${event.key}"]`);
    before = "";
    if (link) { event.preventDefault(); link.click(); return; }
  }
  if (event.key === "?") { $("#keys")?.showModal(); return; }
  before = event.key === "g" ? "g" : "";
});

// Palette: asks after a moment of silence; arrows move between the words and the hits.
const words = $("#palette-words");
let asking, silence;
words?.addEventListener("input", () => {
  clearTimeout(silence);
  asking?.abort();
  silence = setTimeout(async () => {
    asking = new AbortController();
    try {
      const content = await part(words.dataset.find + encodeURIComponent(words.value), asking.signal);
      $("#palette-found").replaceChildren(content);
    } catch (error) {
      if (error.name !== "AbortError") $("#palette-found").textContent = "The search did not answer.";
    }
  }, 150);
});
$("#palette")?.addEventListener("keydown", (event) => {
  const stops = [words, ...all("#palette-found a")];
  const at = stops.indexOf(document.activeElement);
  if (event.key === "ArrowDown") stops[at + 1]?.focus();
  else if (event.key === "ArrowUp") stops[at - 1]?.focus();
  else if (event.key === "Enter" && at === 0) stops[1]?.click();
  else if (event.key === "Escape") $("#palette").close(); // at once: a search field would only clear its text
  else return;
  event.preventDefault();
});

// Worksheet: Ctrl-Enter runs it; a form that was sent says so.
for (const sheet of all("[data-worksheet]")) {
  sheet.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) sheet.requestSubmit();
  });
  sheet.addEventListener("submit", () => {
    if ($("[name=view]", sheet).value !== "csv") $("button", sheet).textContent = "Runs…"; // a file leaves the page
  });
}

// Live parts: polled while they are visible and say so.
for (const live of all("[data-live]")) {
  const timer = setInterval(async () => {
    if (document.hidden) return;
    try {
      const content = await part(live.dataset.live);
      live.replaceChildren(content);
      if (!$("[data-going]", live)) clearInterval(timer);
    } catch { clearInterval(timer); }
  }, 2000);
}

// Signing out in one tab leads the others to the sign-in page.
const channel = "BroadcastChannel" in window ? new BroadcastChannel("limnos") : null;
channel?.addEventListener("message", () => location.reload());
document.addEventListener("submit", (event) => {
  if (event.target.matches("[data-sign-out]")) setTimeout(() => channel?.postMessage("out"), 300);
});
