-- Tries every command that the other scripts use, on keys of its own, and says which one is refused.
local key = PREFIX .. 'probe:' .. ARGV[1]
local tries = {
  { 'TIME' }, { 'EXISTS', key }, { 'TYPE', key }, { 'INCR', key }, { 'SET', key, 'x', 'PX', 1000 }, { 'GET', key },
  { 'MGET', key }, { 'DEL', key },
  { 'HSET', key, 'f', 'x' }, { 'HGET', key, 'f' }, { 'HMGET', key, 'f' }, { 'HGETALL', key }, { 'HKEYS', key },
  { 'HINCRBY', key, 'n', 1 }, { 'HDEL', key, 'f' }, { 'DEL', key },
  { 'ZADD', key, 1, 'm' }, { 'ZRANGE', key, 0, 0 }, { 'ZRANGEBYSCORE', key, 0, 0 }, { 'ZREVRANGEBYSCORE', key, 0, 0 },
  { 'ZRANGEBYLEX', key, '-', '+' }, { 'ZCOUNT', key, 0, 0 }, { 'ZCARD', key }, { 'ZDIFF', 1, key },
  { 'ZREMRANGEBYSCORE', key, 0, 0 }, { 'ZREM', key, 'm' },
  { 'SADD', key, 'm' }, { 'SMEMBERS', key }, { 'SMISMEMBER', key, 'm' }, { 'SREM', key, 'm' }, { 'EXPIRE', key, 1 },
}
-- Errors that are not about rights: they come up again where they belong.
local function forbidden(err)
  for _, code in ipairs({ 'OOM', 'READONLY', 'MISCONF', 'NOREPLICAS', 'WRONGTYPE' }) do
    if string.find(err, code, 1, true) then return false end
  end
  return true
end

for _, command in ipairs(tries) do
  local answer = pcall_(unpack(command))
  if type(answer) == 'table' and answer.err and forbidden(answer.err) then
    pcall_('DEL', key)
    return command[1] .. ': ' .. answer.err
  end
end
pcall_('DEL', key)
return ''
