-- Wakes everybody who waits, the caller's own threads included.
ring('*')
return 1
