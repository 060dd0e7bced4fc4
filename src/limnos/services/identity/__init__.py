"""Users, groups, roles, grants, owners, and how somebody signs in. May import `catalog` and what that may import."""
