"""Programs of users, as small as they can be: a web application, one that forks."""
