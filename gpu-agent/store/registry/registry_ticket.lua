-- A ticket for a copy of what another agent has, good once and for 10 s. ARGV: name, the ticket, for which
-- namespace
local name, ticket, space = ARGV[4], ARGV[5], ARGV[6]
local have, instead = living(name)
if instead then return instead end
redis.call('SET', 'tensor-ticket:' .. ticket, cmsgpack.pack({have.node, name, space, NODE, have.ctime}),
	'PX', ALIVE_MS)
local told = answer('OK', name)
told[2][#told[2] + 1] = 'address'
told[2][#told[2] + 1] = redis.call('HGET', 'node:' .. have.node, 'address') or ''
return told
