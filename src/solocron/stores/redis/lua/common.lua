-- Opens every script: the keys of one namespace, its channel, the time, and the index of what is due.
local PREFIX = KEYS[1] .. ':'
local NAMES, HELD, LOG = PREFIX .. 'names:', PREFIX .. 'held:', PREFIX .. 'log:'
local RUN, ATTEMPTS, SHARDS = PREFIX .. 'run:', PREFIX .. 'attempts:', PREFIX .. 'shards:'
local STATUS, SPANS = PREFIX .. 'status:', PREFIX .. 'spans'
local BLOCKED, HOLDERS, RESERVATIONS = PREFIX .. 'blocked', PREFIX .. 'holders', PREFIX .. 'reservations'
local SWEPT, MARKS = PREFIX .. 'swept', PREFIX .. 'marks'
local COMMITS, NOTIFICATIONS, CHANNEL = PREFIX .. 'commits', PREFIX .. 'notifications', KEYS[2]
local call, pcall_ = redis.call, redis.pcall

-- Whole numbers up to 2^53 as text: tostring() would write 1.7e+15.
local function int(number)
  return string.format('%.0f', number)
end

local function time(shift)
  local now = call('TIME')
  return now[1] * 1000000 + now[2] + shift
end

-- A document is a hash: d(eclared) and s(tate), two texts that no script ever reads; m(ark): version, due instant and
-- holders, so that a document that is the same has the same mark; a job's p(ool) and h(andler); a session's l(ife);
-- and how often it was renewed (n); what the namespace's document bears (g); b(locked until).
local function doc_key(kind, name)
  return PREFIX .. kind .. ':' .. name
end

-- Which server runs this: another one after a failover, and after a restart, which may forget the last second.
-- A user who may not ask is told nothing: then only the age of sessions shows that the store went back.
local function server()
  local told = pcall_('INFO', 'replication')
  return type(told) == 'string' and string.match(told, 'master_replid:(%x+)') or 'unknown'
end

-- Whether a gate (beats, pauses, then words, a line each) stands open: the session is not older than its node knows it,
-- and the namespace's document begins with one of the words, this server, and the mark of the pauses, if that is asked.
local function is_open(gate, session)
  local beats, pauses, words = string.match(gate, '^(%d+)\n([^\n]*)\n?(.*)$')
  if tonumber(call('HGET', doc_key('session', session), 'n') or '0') < tonumber(beats) then return false end
  local bears = call('HGET', doc_key('namespace', 'namespace'), 'g')
  if not bears then return false end
  for word in string.gmatch(words, '[^\n]+') do
    local wanted = word .. ' ' .. server() .. ' ' .. (pauses == '' and '' or pauses .. ' ')
    if string.sub(bears .. ' ', 1, #wanted) == wanted then return true end
  end
  return false
end

-- The length keeps pool 'a:b' with handler 'c' apart from pool 'a' with handler 'b:c'.
local function due_key(pool, handler)
  return PREFIX .. 'due:' .. #pool .. ':' .. pool .. ':' .. handler
end

local function heads_key(pool)
  return PREFIX .. 'heads:' .. pool
end

-- A member of a pool's heads: ordered by the job's name, and cut in two from its end, since names may hold anything.
local function head_of(name, handler)
  return name .. '\0' .. handler .. '\0' .. #handler
end

local function cut_head(member)
  local rest, size = string.match(member, '^(.*)%z(%d+)$')
  return string.sub(rest, 1, #rest - size - 1), string.sub(rest, #rest - size + 1)
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
-- jobs that handler has. Changes are gathered, and written by write_due(), which is called once after the last one.
local queues = {}

local function place(pool, handler, name, due)
  local of_pool = queues[pool]
  if not of_pool then
    of_pool = {}
    queues[pool] = of_pool
  end
  local queue = of_pool[handler]
  if not queue then
    local key = due_key(pool, handler)
    queue = { key = key, head = call('ZRANGE', key, 0, 0)[1], adds = {}, removes = {} }
    of_pool[handler] = queue
  end
  if due then
    local adds = queue.adds
    adds[#adds + 1] = due
    adds[#adds + 1] = name
  else
    queue.removes[#queue.removes + 1] = name
  end
end

local function write_due()
  for pool, of_pool in pairs(queues) do
    local adds, removes = {}, {}
    for handler, queue in pairs(of_pool) do
      many('ZADD', queue.key, queue.adds)
      many('ZREM', queue.key, queue.removes)
      local head = call('ZRANGE', queue.key, 0, 0, 'WITHSCORES')
      if queue.head and queue.head ~= head[1] then removes[#removes + 1] = head_of(queue.head, handler) end
      if head[1] then
        adds[#adds + 1] = head[2]
        adds[#adds + 1] = head_of(head[1], handler)
      end
    end
    many('ZREM', heads_key(pool), removes)
    many('ZADD', heads_key(pool), adds)
  end
end

-- Due instant and holders of a mark.
local function marked(mark)
  local due, holders = string.match(mark or '', '^%S+ (%S*) (.*)$')
  return due or '', holders or ''
end

-- Wakes those who wait. A user without the right to publish has stored nothing less; waiting clients then poll.
local function notify(client)
  local number = int(call('INCR', NOTIFICATIONS))
  pcall_('PUBLISH', CHANNEL, client .. ' ' .. number)
  return number
end
