-- Wakes everybody who waits, the caller's own threads included.
notify('*')
return 1
