// SPDX-License-Identifier: Apache-2.0
// Search in the pages: every word of the query must begin a word of a section. The index is one file of this site.
"use strict";
const box = document.getElementById("search"), list = document.getElementById("results");
const root = document.documentElement.dataset.root;
let sections = null;

async function load() {
  sections ??= fetch(root + "search.json").then((answer) => answer.json());
  return sections;
}

function score(section, words) {
  const title = section.title.toLowerCase(), text = section.text.toLowerCase();
  let total = 0;
  for (const word of words) {
    const start = new RegExp("(^|[^\\p{L}\\p{N}])" + word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"), "u");
    if (start.test(title)) total += 10;
    else if (start.test(text)) total += 1;
    else return 0;
  }
  return total;
}

async function show() {
  const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
  const found = words.length ? (await load()).map((each) => [score(each, words), each]).filter(([points]) => points) : [];
  found.sort((one, other) => other[0] - one[0]);
  list.replaceChildren(...found.slice(0, 12).map(([, each]) => {
    const item = document.createElement("li"), link = document.createElement("a"), words = document.createElement("small");
    link.href = root + each.url;
    link.textContent = each.title;
    words.textContent = each.text.slice(0, 120);
    link.append(words);
    item.append(link);
    return item;
  }));
}

box.addEventListener("input", show);
box.form.addEventListener("submit", (event) => {
  event.preventDefault();
  list.querySelector("a")?.click();
});
