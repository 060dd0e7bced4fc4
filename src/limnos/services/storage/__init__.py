"""Where files of objects lie and who may put them there: the register of places, homes of tables, purges. May import `request`."""
