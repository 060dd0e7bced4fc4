# SPDX-License-Identifier: Apache-2.0
"""Translates error numbers of MySQL and MariaDB to standard SQLSTATEs, because the servers' own SQLSTATEs are too
vague.

Pure. Must not know messages. It lists only the error numbers that a request can cause.
"""

from __future__ import annotations

from typing import Final

_STATES: Final[dict[int, str]] = {
    1050: "42P07",  # the table exists
    1007: "42P06",  # the database exists
    **dict.fromkeys((1051, 1146), "42P01"),  # no such table
    **dict.fromkeys((1008, 1049), "3F000"),  # no such database
    **dict.fromkeys((1217, 1451, 3730), "2BP01"),  # another object depends on it
    **dict.fromkeys(
        (1205, 1213, 1317, 1969, 3024), "57014"
    ),  # lock wait timeout, deadlock, query interrupted, statement timeout
    **dict.fromkeys((1044, 1142, 1143, 1227, 1370, 1410), "42501"),  # not allowed
    **dict.fromkeys((1045, 1130, 1129, 1251, 1698, 3118, 4151), "28000"),  # login refused
}
_CALLERS: Final = frozenset(
    {
        1048,
        1054,
        1059,
        1060,
        1061,
        1062,
        1063,
        1064,
        1067,
        1068,
        1069,
        1070,
        1071,
        1072,
        1073,
        1074,
        1075,
        1083,
        1084,
        1089,
        1090,
        1091,
        1101,
        1102,
        1103,
        1110,
        1113,
        1117,
        1118,
        1121,
        1138,
        1161,
        1166,
        1167,
        1170,
        1171,
        1176,
        1178,
        1215,
        1231,
        1235,
        1253,
        1264,
        1265,
        1280,
        1283,
        1292,
        1293,
        1294,
        1301,
        1347,
        1364,
        1365,
        1366,
        1406,
        1425,
        1426,
        1427,
        1439,
        1553,
        1560,
        1829,
        1830,
        1832,
        1833,
        1834,
        1845,
        1846,
        1847,
        3105,
        3106,
        3108,
        3752,
        3780,
        3819,
        3821,
        3940,
        3959,
        4031,
        4078,
        4079,
        4080,
        4091,
        4161,
    }
)
"""Errors that the caller's request caused: names, types, defaults, keys or rows that do not fit."""


def state_of(error: BaseException | None) -> str:
    """Return the SQLSTATE of a driver's error; empty if there is none."""
    code = error.args[0] if error is not None and error.args else None
    if isinstance(code, int):  # the server's own SQLSTATE is often general or missing
        result = "42000" if code in _CALLERS else _STATES.get(code)
        if result is not None:
            return result
    return getattr(error, "sqlstate", None) or ""


def text_of(error: BaseException | None) -> str:
    """Return the message of a driver's error, without its number."""
    if error is not None and len(error.args) > 1 and isinstance(error.args[0], int):
        return str(error.args[1])
    return str(error)
