-- Raises the mark of the layout from ARGV[1] ('' where there is none) to ARGV[2], if it still is what the caller read.
-- Returns the mark as it stands then.
local key = PREFIX .. 'layout'
if (call('GET', key) or '') == ARGV[1] then call('SET', key, ARGV[2]) end
return call('GET', key) or ''
