# SPDX-License-Identifier: Apache-2.0
"""The wording of actions in messages for users."""

from __future__ import annotations

import pytest

from limnos.access.action_words import actions_of, parse_action
from limnos.access.actions import Action
from limnos.model.errors import BadRequest
from limnos.model.privileges import Privilege


@pytest.mark.parametrize("text", ["table_load", "TABLE-LOAD", " Table_Load "])
def test_case_and_dashes_of_action_names_are_ignored(text: str) -> None:
    """Case and dashes in the names of actions are ignored."""
    assert parse_action(text) is Action.TABLE_LOAD


def test_exchanged_words_suggest_the_action_of_both() -> None:
    """An action with its words exchanged suggests that action alone."""
    with pytest.raises(BadRequest, match=r"did you mean table_drop\?"):
        parse_action("drop_table")


@pytest.mark.parametrize("text,action", [("model_read", "model_load"), ("view-get", "view_load")])
def test_reading_verb_suggests_the_load_of_its_object(text: str, action: str) -> None:
    """Reading an object without rows is its load, and not an action of similar letters."""
    with pytest.raises(BadRequest, match=rf"did you mean {action}\?"):
        parse_action(text)


def test_unknown_action_suggests_similar_ones() -> None:
    """The refusal of an unknown action suggests similar ones."""
    with pytest.raises(BadRequest, match=r"did you mean .*table_load"):
        parse_action("tabel_load")


@pytest.mark.parametrize(
    "text,action",
    [("select", "table_read"), ("INSERT", "table_commit"), ("drop", "table_drop"), ("grant", "privilege_grant")],
)
def test_word_of_sql_as_action_suggests_the_action_that_means_it(text: str, action: str) -> None:
    """A word that people type for an action suggests that action alone, and none that is spelled similarly."""
    with pytest.raises(BadRequest, match=rf"did you mean {action}\? 'limnos access explain --actions'"):
        parse_action(text)


@pytest.mark.parametrize(
    "text,first",
    [
        ("select_table", "table_load"),
        ("SELECT-TABLE", "table_load"),
        ("use_catalog", "catalog_load"),
        ("use_schema", "namespace_load"),
        ("manage_users", "user_manage"),
        ("link_model_version", "model_link"),
    ],
)
def test_privilege_as_action_lists_actions_that_need_it(text: str, first: str) -> None:
    """If the name is a privilege's, the message says so and lists the actions that need the privilege."""
    with pytest.raises(BadRequest, match=f"is a privilege, not an action: .*for example {first}"):
        parse_action(text)


def test_every_privilege_is_needed_by_an_action() -> None:
    """Each privilege is needed by some action, and all listed actions exist."""
    for privilege in Privilege:
        actions = actions_of(privilege)

        assert 0 < len(actions) <= 8, privilege
        assert [parse_action(action.word) for action in actions] == list(actions)
