/* SPDX-License-Identifier: Apache-2.0
 *
 * The index of tensors in Redis (gpu-agent/store/registry/registry_requests.c, registry_fill.c and the Lua
 * scripts): two agents, one name, two holders.  Redis is emptied, an agent is thought dead, dies
 * and comes back, an answer is lost.  A script is one step, its answer another.  Nobody is given
 * a name that an agent whose index is good has, nobody is told that what it has is missing; and
 * when both agents' indexes are good and nothing is under way, the index says what they know:
 * owner, holders, count.
 *
 * Mutants (-D): NO_TOKEN: scripts do not look whether the index is what the agent filled.
 * NO_SWEEP: after a filling, what the agent did not say stays.  HOLDERS_STAY: a filling adds
 * holders and removes none.  PUT_OVER: a filling takes the name from who got it meanwhile.
 * FORGETS_LATE: drops are forgotten at the end of a filling, not at its begin.  COUNT_APART: the
 * count is written by a script of its own.
 */
#define REQUESTS (2 - a) /* of each agent */
#define FAULTS 2	  /* of any kind */

mtype = { MADE, HERE, ELSEWHERE, OK, MISSING, REFILL, AWAY };

/* Redis. */
byte owner; /* agent + 1; 0: the name is not there */
bool lost, member[4], token[2];
byte count;

/* The agents: what the stores know, and requests that nobody waits for. */
bool has[2], holds[4], dropping[4], asking[4], idle[2], filled[2];

byte faults;

inline clear() { member[0] = false; member[1] = false; member[2] = false; member[3] = false }
inline recount() { count = member[0] + member[1] + member[2] + member[3] }

#define FIRST (2 * a)
#define STRANGE (!token[a])
#define DEAD (owner == 0 || lost || (owner != a + 1 && !token[owner - 1]))

#ifdef NO_TOKEN
#define LOOKS(act) act
#else
#define LOOKS(act) if :: STRANGE -> got = REFILL :: else -> act fi
#endif

inline make(s)
{
	if
	:: !DEAD && owner == a + 1 -> member[s] = true; recount(); got = HERE
	:: !DEAD && owner != a + 1 -> got = ELSEWHERE
	:: DEAD ->
		assert(!(has[1 - a] && filled[1 - a] && token[1 - a] && idle[1 - a]));
		owner = a + 1; lost = false; clear(); member[s] = true; recount(); got = MADE
	fi
}

inline take(s)
{
	if
	:: DEAD -> assert(!(has[a] && filled[a])); got = MISSING
	:: !DEAD && owner != a + 1 -> got = ELSEWHERE
	:: !DEAD && owner == a + 1 ->
		member[s] = true; got = OK;
#ifndef COUNT_APART
		recount()
#else
		read = member[0] + member[1] + member[2] + member[3]
#endif
	fi
}

inline drop(s)
{
	if
	:: owner == a + 1 && !lost -> member[s] = false; recount(); got = OK
	:: else -> got = MISSING
	fi
}

inline remove()
{
	if
	:: !DEAD && owner != a + 1 -> got = ELSEWHERE
	:: else -> owner = 0; lost = false; clear(); recount(); got = OK
	fi
}

/* An answer may be lost, whether the script ran or not. */
inline perhaps_lost()
{
	if
	:: faults < FAULTS && got != REFILL -> faults++; got = AWAY
	:: true
	fi
}

/* Three scripts; where one finds the token gone, all begins anew. */
inline fill()
{
	filled[a] = false;
	do
	:: filled[a] -> break
	:: else ->
		/* registry_enter.lua; what was to be dropped is read from the store. */
		atomic {
			token[a] = true;
#ifndef FORGETS_LATE
			dropping[FIRST] = false; dropping[FIRST + 1] = false;
#endif
			said = false
		};
		/* registry_put.lua */
		atomic {
			if
			:: !has[a] || STRANGE
#ifndef PUT_OVER
			:: has[a] && !STRANGE && !DEAD && owner != a + 1 ->
				has[a] = false; holds[FIRST] = false; holds[FIRST + 1] = false
			:: has[a] && !STRANGE && (DEAD || owner == a + 1) ->
#else
			:: has[a] && !STRANGE ->
#endif
				if
#ifdef HOLDERS_STAY
				:: owner == a + 1
#endif
				:: else -> clear()
				fi;
				owner = a + 1; lost = false;
				member[FIRST] = member[FIRST] || holds[FIRST];
				member[FIRST + 1] = member[FIRST + 1] || holds[FIRST + 1];
				recount();
				said = true
			fi
		};
		/* registry_filled.lua */
		atomic {
			if
			:: STRANGE
			:: else ->
#ifndef NO_SWEEP
				if
				:: !said && owner == a + 1 -> owner = 0; lost = false; clear(); recount()
				:: else
				fi;
#endif
#ifdef FORGETS_LATE
				dropping[FIRST] = false; dropping[FIRST + 1] = false;
#endif
				filled[a] = true
			fi
		}
	od
}

proctype agent(byte a)
{
	byte requests, s, read;
	mtype got;
	bool said;

	goto start;
end:
	do
	/* Requests go out in order: drops that came before went before. */
	:: atomic { requests < REQUESTS && !dropping[FIRST] && !dropping[FIRST + 1] ->
			requests++;
			idle[a] = false;
			if
			:: s = FIRST
			:: s = FIRST + 1
			fi;
			asking[s] = true
		};
		if
		:: true ->
create:
			atomic { LOOKS(make(s)); perhaps_lost() };
			atomic {
				if
				:: got == MADE -> has[a] = true; holds[s] = true
				:: got == HERE && has[a] -> holds[s] = true
				:: else
				fi
			};
			if
			:: got == REFILL -> fill(); goto create
			:: else
			fi
		:: has[a] ->
hold:
			atomic { LOOKS(take(s)); perhaps_lost() };
#ifdef COUNT_APART
			if
			:: got == OK -> count = read
			:: else
			fi;
#endif
			atomic {
				if
				:: got == OK && has[a] -> holds[s] = true
				:: else
				fi
			};
			if
			:: got == REFILL -> fill(); goto hold
			:: else
			fi
		:: has[a] ->
delete:
			atomic { LOOKS(remove()); perhaps_lost() };
			atomic {
				if
				:: got == OK -> has[a] = false; holds[FIRST] = false; holds[FIRST + 1] = false
				:: else
				fi
			};
			if
			:: got == REFILL -> fill(); goto delete
			:: else
			fi
		fi;
		asking[s] = false;
		if
		:: got == AWAY -> fill()
		:: else
		fi;
		idle[a] = true
	:: atomic { dropping[FIRST] || dropping[FIRST + 1] ->
			idle[a] = false;
			if
			:: dropping[FIRST] -> s = FIRST
			:: else -> s = FIRST + 1
			fi
		};
		atomic {
			LOOKS(drop(s));
			if
			:: got != REFILL -> dropping[s] = false; perhaps_lost()
			:: else
			fi
		};
		if
		:: got == REFILL || got == AWAY -> fill()
		:: else
		fi;
		idle[a] = true
	/* The renewal finds that its key is gone. */
	:: atomic { STRANGE -> idle[a] = false };
		fill();
		idle[a] = true
	/* It dies, and is back with nothing. */
	:: atomic { faults < FAULTS -> faults++; idle[a] = false; has[a] = false; holds[FIRST] = false;
			holds[FIRST + 1] = false; dropping[FIRST] = false; dropping[FIRST + 1] = false };
start:
		fill();
		idle[a] = true
	od
}

/* Holders end at any time, but while one takes the same name (registry.h): the store knows at
 * once. */
proctype holder(byte s)
{
end:
	do
	:: atomic { holds[s] && !asking[s] -> holds[s] = false; dropping[s] = true }
	od
}

proctype world()
{
	byte a;
end:
	do
	:: atomic { faults < FAULTS -> faults++; owner = 0; lost = false; clear(); recount();
			token[0] = false; token[1] = false }
	/* Its key lapses, and the other marks it. */
	:: atomic { faults < FAULTS -> faults++;
			if :: a = 0 :: a = 1 fi;
			token[a] = false;
			if
			:: token[1 - a] && owner == a + 1 -> lost = true; clear(); recount()
			:: else
			fi }
	:: atomic { idle[0] && idle[1] && token[0] && token[1] && !dropping[0] && !dropping[1] &&
			!dropping[2] && !dropping[3] ->
			assert(!(has[0] && has[1]));
			assert((owner == 1 && !lost) == has[0]);
			assert((owner == 2 && !lost) == has[1]);
			assert(member[0] == holds[0] && member[1] == holds[1]);
			assert(member[2] == holds[2] && member[3] == holds[3]);
			assert(count == member[0] + member[1] + member[2] + member[3]) }
	od
}

init
{
	atomic { run agent(0); run agent(1); run holder(0); run holder(3); run world() }
}
