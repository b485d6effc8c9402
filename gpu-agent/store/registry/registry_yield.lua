-- This agent has it no longer; others may. ARGV: name, '', why it is lost ('': nobody held it, it is not)
local name, why = ARGV[4], ARGV[6]
local have, instead = known(name)
if instead then return instead end
if not have then return {'MISSING'} end
if have.node ~= NODE then
	unreplicate(name, NODE)
elseif have.state ~= 'lost' and not promote(name, have, why == '') then
	if why == '' then
		forget(name, NODE)
	else
		for _, other in ipairs(redis.call('HKEYS', replicas(name))) do unreplicate(name, other) end
		delist('of', NODE, name)
		lose(name, why)
	end
end
return {'OK'}
