-- Before each script. ARGV[1] is the agent's node ID, ARGV[2] the token of its last entering,
-- ARGV[3] the epoch of its memory.
--
-- tensor:NAME          hash, what is known of a tensor
-- tensor-holders:NAME  set; the hash's refcount is its size
-- tensor-of:NODE       set of names, what a node has; tensor-lost:NODE those it had when it lapsed
-- tensor-fill:NODE     set of names, what a node has said since it entered
-- tensor-nodes         set of node IDs; node:ID lives 10 s, and is renewed
local NODE, TOKEN, EPOCH = ARGV[1], ARGV[2], ARGV[3]
local ALIVE_MS, LOST_S = 10000, 86400
local FIELDS = {'name', 'dtype', 'shape', 'device', 'bytes', 'ipc_handle', 'owner_pid', 'ctime',
	'mtime', 'node', 'gpu_uuid', 'state', 'epoch', 'offset', 'version', 'replicas'}

local function key(name) return 'tensor:' .. name end
local function holders(name) return 'tensor-holders:' .. name end
local function alive(node) return redis.call('EXISTS', 'node:' .. node) == 1 end

-- The index is not what this agent filled: it was emptied, or this agent was thought dead.
local function strange()
	return redis.pcall('HGET', 'node:' .. NODE, 'token') ~= TOKEN
end

-- What only these scripts write: another value of a field is somebody's hand.
local function check(record)
	local all = {}
	for i, field in ipairs(FIELDS) do
		local value = record[field] or ''
		all[i] = #value .. ':' .. value
	end
	return redis.sha1hex(table.concat(all))
end

local function kind(name, wanted)
	local got = redis.call('TYPE', name).ok
	return got == 'none' or got == wanted
end

-- The hash as a table; nil: there is none. The second: it was edited.
local function read(name)
	if not kind(key(name), 'hash') or not kind(holders(name), 'set') then return nil, true end
	local flat, record = redis.call('HGETALL', key(name)), {}
	if #flat == 0 then return nil, false end
	for i = 1, #flat, 2 do record[flat[i]] = flat[i + 1] end
	if record.state == 'error' then return nil, false end
	return record, record.check ~= check(record)
		or record.refcount ~= tostring(redis.call('SCARD', holders(name)))
end

-- It was edited, and is nobody else's: this agent's store knows what it was.
local function spoilt(name, have, edited)
	return edited and (not have or not have.node or have.node == NODE
		or redis.call('SISMEMBER', 'tensor-of:' .. NODE, name) == 1)
end

local function count(name)
	redis.call('HSET', key(name), 'refcount', tostring(redis.call('SCARD', holders(name))))
end

-- Writes the fields at ARGV[first] and behind it, in pairs.
local function write(name, first)
	for i = first, #ARGV, 2 do redis.call('HSET', key(name), ARGV[i], ARGV[i + 1]) end
	local record = {}
	for _, field in ipairs(FIELDS) do record[field] = redis.call('HGET', key(name), field) or '' end
	redis.call('HSET', key(name), 'check', check(record))
	count(name)
end

local function forget(name, node)
	redis.call('DEL', key(name), holders(name))
	if node then redis.call('SREM', 'tensor-of:' .. node, name) end
end

-- Nobody answers for it: its agent is gone, or is this one in a former life.
local function dead(record)
	if record.state == 'lost' or not record.node then return true end
	if record.node == NODE then return record.epoch ~= EPOCH end
	return not alive(record.node)
end

local function answer(status, name)
	return {status, name and redis.call('HGETALL', key(name)) or {}}
end
