-- What a ticket is for, which was brought to this agent. ARGV: '', the ticket
local ticket = redis.call('GETDEL', 'tensor-ticket:' .. ARGV[5])
if strange() then return {'REFILL'} end
if not ticket then return {'MISSING'} end
local said = cmsgpack.unpack(ticket)
local name = said[2]
local have = read(name)
if said[1] ~= NODE or not have or have.node ~= NODE or have.epoch ~= EPOCH or have.ctime ~= said[5] then
	return {'MISSING'}
end
local told = answer('OK', name)
for _, word in ipairs({'for', said[3], 'by', said[4]}) do told[2][#told[2] + 1] = word end
return told
