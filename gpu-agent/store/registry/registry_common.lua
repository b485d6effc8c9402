-- Before each script. ARGV[1] is the agent's node ID, ARGV[2] the token of its last entering,
-- ARGV[3] the epoch of its memory.
--
-- tensor:NAME          hash, what is known of a tensor
-- tensor-holders:NAME  set; the hash's refcount is its size
-- tensor-of:NODE       set of names, what a node has; tensor-lost:NODE those it had when it lapsed
-- tensor-fill:NODE     set of names, what a node has said since it entered
-- tensor-replica:NAME  hash; a node's field is what the tensor's hash would say if its replica were the first
-- tensor-copies:NODE   set of names, what a node has replicas of; tensor-copied:NODE those it has said
-- tensor-words:NODE    list, what a node is told when it renews: '-' and a name that is gone, '+' and one
--                      whose replica here is the first now, '^' and one that is for its holders alone
-- tensor-nodes         set of node IDs; node:ID lives 10 s, and is renewed
local NODE, TOKEN, EPOCH = ARGV[1], ARGV[2], ARGV[3]
local ALIVE_MS, LOST_S = 10000, 86400
local FIELDS = {'name', 'dtype', 'shape', 'device', 'bytes', 'ipc_handle', 'owner_pid', 'ctime',
	'mtime', 'node', 'gpu_uuid', 'state', 'epoch', 'offset', 'version', 'replicas', 'share'}

local function key(name) return 'tensor:' .. name end
local function holders(name) return 'tensor-holders:' .. name end
local function replicas(name) return 'tensor-replica:' .. name end
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
	if not kind(key(name), 'hash') or not kind(holders(name), 'set')
		or not kind(replicas(name), 'hash') then return nil, true end
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

-- How many names a set of a node's has ('of', 'copies') stands in its entry, too, from its last filling on: one that
-- somebody deleted, or took a name out of, is noticed by that.
local function enlist(set, node, name)
	if redis.call('SADD', 'tensor-' .. set .. ':' .. node, name) == 0 then return end
	if redis.pcall('HEXISTS', 'node:' .. node, set) == 1 then redis.pcall('HINCRBY', 'node:' .. node, set, 1) end
end

local function delist(set, node, name)
	if redis.call('SREM', 'tensor-' .. set .. ':' .. node, name) == 0 then return end
	if redis.pcall('HEXISTS', 'node:' .. node, set) == 1 then redis.pcall('HINCRBY', 'node:' .. node, set, -1) end
end

local function count(name)
	redis.call('HSET', key(name), 'refcount', tostring(redis.call('SCARD', holders(name))))
end

-- Writes fields, a table, and what follows from the other keys.
local function put_fields(name, fields)
	for field, value in pairs(fields) do redis.call('HSET', key(name), field, value) end
	local nodes, record = redis.call('HKEYS', replicas(name)), {}
	table.sort(nodes)
	redis.call('HSET', key(name), 'replicas', table.concat(nodes, ' '))
	for _, field in ipairs(FIELDS) do record[field] = redis.call('HGET', key(name), field) or '' end
	redis.call('HSET', key(name), 'check', check(record))
	count(name)
end

-- ARGV[first] and behind it, in pairs.
local function fields_at(first)
	local fields = {}
	for i = first, #ARGV, 2 do fields[ARGV[i]] = ARGV[i + 1] end
	return fields
end

local function write(name, first) put_fields(name, fields_at(first)) end

local function tell(node, word, name)
	redis.call('RPUSH', 'tensor-words:' .. node, word .. name)
	redis.call('EXPIRE', 'tensor-words:' .. node, LOST_S)
end

-- A holder at a node that has a replica is 'NODE/holder'; at the first it is 'holder'.
local function holder_at(node, holder) return node .. '/' .. holder end

-- Takes those of NODE ('': of the first) out of the set; the list, without the node.
local function take_holders(name, node)
	local taken = {}
	for _, member in ipairs(redis.call('SMEMBERS', holders(name))) do
		local slash = string.find(member, '/', 1, true)
		if (slash and string.sub(member, 1, slash - 1) or '') == node then
			redis.call('SREM', holders(name), member)
			taken[#taken + 1] = slash and string.sub(member, slash + 1) or member
		end
	end
	return taken
end

local function forget(name, node)
	for _, other in ipairs(kind(replicas(name), 'hash') and redis.call('HKEYS', replicas(name)) or {}) do
		delist('copies', other, name)
		tell(other, '-', name)
	end
	redis.call('DEL', key(name), holders(name), replicas(name))
	if node then delist('of', node, name) end
end

-- The node has no replica of it any more.
local function unreplicate(name, node)
	delist('copies', node, name)
	if redis.call('HDEL', replicas(name), node) == 0 then return end
	take_holders(name, node)
	if redis.call('EXISTS', key(name)) == 1 then put_fields(name, {}) end
end

-- A replica of an agent that lives becomes the first (HELD: only one that is held); the hash anew, or nil.
local function promote(name, have, held)
	local nodes = redis.call('HKEYS', replicas(name))
	table.sort(nodes)
	for _, node in ipairs(nodes) do
		local fields = cmsgpack.unpack(redis.call('HGET', replicas(name), node))
		local here = alive(node) and redis.call('HGET', 'node:' .. node, 'epoch') == fields.epoch
		local mine = here and take_holders(name, node) or {}
		if here and (#mine > 0 or not held) then
			take_holders(name, '')
			for _, holder in ipairs(mine) do redis.call('SADD', holders(name), holder) end
			redis.call('HDEL', replicas(name), node)
			delist('copies', node, name)
			if have.node then delist('of', have.node, name) end
			enlist('of', node, name)
			tell(node, held and '^' or '+', name)
			fields.version, fields.share = have.version, have.share or ''
			put_fields(name, fields)
			-- For those alone that hold it there: whether there are any, that node says when it fills (registry_put.lua).
			if held then redis.call('HSET', key(name), 'heir', '1') else redis.call('HDEL', key(name), 'heir') end
			return read(name)
		end
	end
end

-- Nobody answers for it: its agent is gone, or is this one in a former life.
local function dead(record)
	if record.state == 'lost' or not record.node then return true end
	if record.node == NODE then return record.epoch ~= EPOCH end
	return not alive(record.node)
end

-- What stands for the name now: where its first is dead, a replica does.
local function promoted(name, have)
	return have and dead(have) and promote(name, have) or have
end

local function answer(status, name)
	return {status, name and redis.call('HGETALL', key(name)) or {}}
end

-- What the index has of the name; the second is what the script answers in its place.
local function known(name)
	if strange() then return nil, {'REFILL'} end
	local have, edited = read(name)
	if spoilt(name, have, edited) then return nil, {'EDITED'} end
	return have
end

-- The same where somebody answers for it.
local function living(name)
	local have, instead = known(name)
	if instead then return nil, instead end
	if not have then return nil, {'MISSING'} end
	have = promoted(name, have)
	if dead(have) then return nil, answer('MISSING', name) end
	return have
end

local function has_replica(name) return redis.call('HEXISTS', replicas(name), NODE) == 1 end

-- This node's replica, with fields. False: the tensor is another one, or none that can have one.
local function replicate(name, have, fields)
	if not have or dead(have) or have.node == NODE or have.state ~= 'sealed'
		or have.ctime ~= fields.ctime then return false end
	redis.call('HSET', replicas(name), NODE, cmsgpack.pack(fields))
	enlist('copies', NODE, name)
	put_fields(name, {})
	return true
end

local function lose(name, why)
	local now = redis.call('TIME')
	redis.call('DEL', holders(name), replicas(name))
	put_fields(name, {state = 'lost', error = why, mtime = now[1] .. string.format('%06d000', now[2])})
	redis.call('EXPIRE', key(name), LOST_S)
end
