/* SPDX-License-Identifier: Apache-2.0
 *
 * A session whose wire is cut, and whose sidecar is restarted, at any moment (docs/RESUME.md).
 * Each command is executed once and in order, each reply reaches its slot once and in order, and
 * nothing is left over: not where the welcome of a resumption is what was lost, either.
 *
 * Mutants (-D): SENDS_UNACKNOWLEDGED: a command is executed twice.  FORGETS_SENT: a reply is lost.
 * COUNTS_FIRST: a reply is lost with the sidecar.  NO_SLOT_NUMBER: it comes twice.  ONE_SECRET: the
 * session is locked out.  OLD_CONNECTION: what a dead connection still held is taken.
 */
#define FRAMES 2
#define CUTS 2
#define RESTARTS 1
#define NONE 255

mtype = { HELLO, WELCOME, COMMAND, REPLY, TAKEN };
/* The connections, one after the other: what a cut one holds may still be read, by who has not seen
 * yet that there is another, and is lost then. */
#define CONNECTIONS (2 + CUTS + RESTARTS)
chan up[CONNECTIONS] = [3] of { mtype, byte, byte };   /* HELLO secret received; COMMAND number; TAKEN number */
chan down[CONNECTIONS] = [3] of { mtype, byte, byte }; /* WELCOME secret taken; REPLY number acknowledged */
byte connection = 1; /* the one that is not cut */
byte cuts;

/* The segment: what outlives the sidecar. */
byte head;	/* commands acknowledged */
byte counted;	/* replies that were processed */
byte slot;	/* number of the reply in the slot; each is read by the program at once */
byte secret;
byte delivered; /* replies that the program has seen */

/* The agent. */
byte executed; /* commands */
byte current, next = NONE;

active proctype network()
{
end:
	do
	:: atomic { cuts < CUTS -> cuts++; connection++ }
	od
}

/* Into connection MINE, or nowhere where that is cut. */
inline send_up(what_, one, two)
{
	atomic {
		if
		:: mine == connection && nfull(up[mine]) -> up[mine]!what_(one, two)
		:: mine != connection
		fi
	}
}

inline send_down(what_, one, two)
{
	atomic {
		if
		:: mine == connection && nfull(down[mine]) -> down[mine]!what_(one, two)
		:: mine != connection
		fi
	}
}

inline deliver(number)
{
	if
	:: slot == number && delivered >= number ->
#ifdef NO_SLOT_NUMBER
		assert(false)
#else
		skip /* it was written before the sidecar died */
#endif
	:: else ->
		assert(number == delivered + 1);
		d_step { slot = number; delivered = number }
	fi
}

active proctype sidecar()
{
	byte mine, sent, got, b, c, restarts;
	mtype what;
	bool joined = true; /* the session's first connection is there */

begin: /* a fresh process knows the segment */
	mine = connection;
	joined = joined && mine == 1;
	sent = head;
	do
	:: delivered == FRAMES && counted == FRAMES -> break
	:: mine != connection -> mine = connection; joined = false
	:: !joined && mine == connection ->
		send_up(HELLO, secret, counted);
		if
		:: down[mine]?WELCOME(b, c) -> secret = b; sent = c; joined = true
		:: mine != connection
		fi
	:: joined && sent < FRAMES -> send_up(COMMAND, sent + 1, 0); sent++
	:: joined && nempty(down[mine]) ->
		down[mine]?what, got, c;
		assert(what == REPLY);
		if
		:: c > head -> head = c
		:: else
		fi;
#ifdef COUNTS_FIRST
		counted = got;
#else
		deliver(got);
#endif
		if
		:: restarts < RESTARTS -> atomic { restarts++; connection++ }; joined = false; goto begin
		:: skip
		fi;
#ifdef COUNTS_FIRST
		deliver(got);
#else
		counted = got;
#endif
		send_up(TAKEN, counted, 0)
	od
}

active proctype agent()
{
	byte mine = 1, sent, kept, b, c;

end:
	do
	:: atomic {
		mine != connection && nempty(up[connection]) ->
		up[connection]?HELLO(b, c);
		mine = connection
	   };
#ifdef ONE_SECRET
		if
		:: b == current -> current = b + 1; next = current
		:: else -> goto end
		fi;
#else
		if
		:: b == current || b == next -> current = b; next = b + 1
		:: else -> goto end
		fi;
#endif
		if
		:: c > kept -> kept = c
		:: else
		fi;
#ifndef FORGETS_SENT
		sent = c; /* again what the sidecar does not have */
#endif
#ifdef SENDS_UNACKNOWLEDGED
		send_down(WELCOME, next, kept)
#else
		send_down(WELCOME, next, executed)
#endif
	:: up[mine]?COMMAND(b, c) ->
		assert(b == executed + 1);
		executed = b
#ifdef OLD_CONNECTION
	:: mine > 1 && up[mine - 1]?[COMMAND(_, _)] ->
		up[mine - 1]?COMMAND(b, c);
		assert(b == executed + 1);
		executed = b
#endif
	:: up[mine]?TAKEN(b, c) ->
		if
		:: b > kept -> kept = b
		:: else
		fi
	:: sent < executed && mine == connection && nfull(down[mine]) ->
		assert(sent >= kept); /* what is sent again was kept */
		sent++;
		send_down(REPLY, sent, executed)
	od
}
