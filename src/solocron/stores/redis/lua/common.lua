-- Opens every script: the keys of one namespace, the time, and the index of what is due.
local PREFIX = KEYS[1] .. ':'
local NAMES, HELD, LOG, RUN = PREFIX .. 'names:', PREFIX .. 'held:', PREFIX .. 'log:', PREFIX .. 'run:'
local STATUS, SPANS = PREFIX .. 'status:', PREFIX .. 'spans'
local BLOCKED, HOLDERS, OFFERED = PREFIX .. 'blocked', PREFIX .. 'holders', PREFIX .. 'offered'
local SWEEP, SWEPT = PREFIX .. 'sweep', PREFIX .. 'swept'
local COMMITS, RINGS, RING = PREFIX .. 'commits', PREFIX .. 'rings', PREFIX .. 'ring'
local call, pcall_ = redis.call, redis.pcall

-- Whole numbers up to 2^53 as text: tostring() would write 1.7e+15.
local function int(number)
  return string.format('%.0f', number)
end

local function time(shift)
  local now = call('TIME')
  return now[1] * 1000000 + now[2] + shift
end

local function doc_key(kind, name)
  return PREFIX .. kind .. ':' .. name
end

-- The length keeps pool 'a:b' with handler 'c' apart from pool 'a' with handler 'b:c'.
local function due_key(pool, handler)
  return PREFIX .. 'due:' .. #pool .. ':' .. pool .. ':' .. handler
end

local function heads_key(pool)
  return PREFIX .. 'heads:' .. pool
end

-- Variadic commands in portions: Lua's stack holds some thousand values.
local function many(command, key, values)
  local done = 0
  for first = 1, #values, 2000 do
    done = done + call(command, key, unpack(values, first, math.min(first + 1999, #values)))
  end
  return done
end

-- What is due has two levels: a sorted set per (pool, handler), and per pool the earliest job of each handler. So a
-- node finds its own in the order of their due times, and a handler it does not know costs it one look, however many
-- jobs that handler has.
local touched = {}

local function place(pool, handler, name, due)
  local key = due_key(pool, handler)
  if not touched[key] then
    touched[key] = { pool = pool, handler = handler, head = call('ZRANGE', key, 0, 0)[1] }
  end
  if due then
    call('ZADD', key, due, name)
  else
    call('ZREM', key, name)
  end
end

-- To be called once after the last place().
local function settle_heads()
  for key, was in pairs(touched) do
    local head = call('ZRANGE', key, 0, 0, 'WITHSCORES')
    local heads = heads_key(was.pool)
    if was.head and was.head ~= head[1] then
      call('ZREM', heads, was.head .. '\0' .. was.handler)
    end
    if head[1] then
      call('ZADD', heads, head[2], head[1] .. '\0' .. was.handler)
    end
  end
end

-- Wakes those who wait. A user without the right to publish has stored nothing less; waiting clients then poll.
local function ring(client)
  pcall_('PUBLISH', RING, client .. ' ' .. int(call('INCR', RINGS)))
end
