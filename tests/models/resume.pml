/* SPDX-License-Identifier: Apache-2.0
 *
 * A session whose wire is cut, and whose sidecar is killed and followed by another one, at any moment
 * (docs/RESUME.md; sidecar/channel/replies.c, transport/ring.c: ring_adopt, sidecar/channel/resume.c,
 * gpu-agent/front/session/resume.c).  The program makes a call when the one before it is answered, in the same slot.
 * Each command is executed once and in order, each call gets its own answer, each upcall comes once, and
 * nothing is left over: not where the welcome of a resumption is what was lost, either.
 *
 * Mutants (-D): SENDS_UNACKNOWLEDGED: a command is executed twice.  FORGETS_SENT: an answer is lost.
 * COUNTS_FIRST: it is lost with the sidecar.  NO_CALL_NUMBER: it comes twice, and is another call's then.
 * KEEPS_CALL_NUMBER: the same, before the next call is published.  NO_UPCALL_NUMBER: an upcall comes twice.
 * ONE_SECRET, SHOWS_FIRST: the session is locked out.  OLD_CONNECTION: what a dead connection still held is
 * taken.
 */
#define CALLS 2
#define FRAMES (2 * CALLS) /* of the agent: an upcall, 2n - 1, and the answer, 2n, for each call */
#define CUTS 1
#define RESTARTS 2
#define NONE 255

mtype = { HELLO, WELCOME, JOIN, COMMAND, ANSWER };
/* The connections, one after the other: what a cut one holds may still be read, by who has not seen
 * yet that there is another, and is lost then. */
#define CONNECTIONS (2 + CUTS + RESTARTS)
chan up[CONNECTIONS] = [3] of { mtype, byte, byte };   /* HELLO secret counted; JOIN secret; COMMAND number */
chan down[CONNECTIONS] = [3] of { mtype, byte, byte }; /* WELCOME secret taken; ANSWER number acknowledged */
byte connection = 1; /* the one that is not cut */
byte cuts, restarts;

/* The segment: what outlives the sidecar. */
byte tail;     /* commands published */
byte head;     /* of them, those that were acknowledged */
byte counted;  /* of the agent's frames, those that did what they are for */
byte call;     /* for which the slot waits; 0: nobody's */
bool answered; /* the slot */
byte slot;     /* whose answer is in it */
byte giving, giving_call; /* the frame whose answer is given, and to which call */
byte upcalls, upcall_frame;
byte secret;

/* The agent. */
byte executed; /* commands */
byte current, next = NONE, last; /* secrets: the one that serves, the one offered, and how many there were */

active proctype network()
{
end:
	do
	:: atomic { cuts < CUTS -> cuts++; connection++ }
	od
}

active proctype program()
{
	byte n;

	do
	:: n == CALLS -> break
	:: else ->
		n++;
#ifndef KEEPS_CALL_NUMBER
		call = 0;
#endif
		answered = false;
		atomic { call = n; tail = n };
		answered;
		assert(slot == n)
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

/* kill -9: the next one knows the segment only. */
#define MAY_DIE                                                                                  \
	if                                                                                       \
	:: atomic { restarts < RESTARTS -> restarts++; connection++; joined = false; goto begin } \
	:: skip                                                                                  \
	fi

/* Frame GOT does what it is for. */
inline deliver()
{
	if
	:: got % 2 ->
#ifndef NO_UPCALL_NUMBER
		if
		:: again && upcall_frame == got -> skip
		:: else ->
#endif
			assert(upcalls == got / 2);
			d_step { upcalls++; upcall_frame = got }
#ifndef NO_UPCALL_NUMBER
		fi
#endif
	:: else ->
		if
#ifndef NO_CALL_NUMBER
		:: again && (waits == 0 || (given == got && given_call != waits)) -> skip /* the program has it */
#endif
		:: else ->
			giving_call = waits;
			giving = got;
			MAY_DIE;
			d_step { slot = got / 2; waits = 0; answered = true }
		fi
	fi
}

active proctype sidecar()
{
	byte mine, sent, got, b, c, given, given_call;
	byte waits; /* the call that waits in the slot, as far as this sidecar knows */
	mtype what;
	bool joined = true; /* the session's first connection is there */
	bool again;

begin: /* a fresh process knows the segment */
	mine = connection;
	joined = joined && mine == 1;
	again = !joined;
	waits = 0;
	given = giving;
	given_call = giving_call;
	sent = head;
	do
	:: counted == FRAMES -> break
	:: mine != connection -> mine = connection; joined = false
	:: !joined && mine == connection ->
		send_up(HELLO, secret, counted);
		if
		:: down[mine]?WELCOME(b, c) ->
#ifdef SHOWS_FIRST
			send_up(JOIN, b, 0);
			MAY_DIE;
			secret = b;
#else
			secret = b;
			MAY_DIE;
			send_up(JOIN, b, 0);
#endif
			if
			:: again && !answered && call != 0 && call <= c -> waits = call
			:: else
			fi;
			sent = c;
			joined = true
		:: mine != connection
		fi
	:: joined && sent < tail -> send_up(COMMAND, sent + 1, 0); sent++; waits = sent
	:: joined && nempty(down[mine]) ->
		down[mine]?what, got, c;
		assert(what == ANSWER && got == counted + 1);
#ifdef COUNTS_FIRST
		counted = got;
		MAY_DIE;
		deliver();
#else
		deliver();
		MAY_DIE;
		if
		:: c > head -> head = c
		:: else
		fi;
		MAY_DIE;
		counted = got;
#endif
		again = false
	od
}

active proctype agent()
{
	byte mine = 1, sent, b, c;
	bool joined = true;

end:
	do
	:: atomic {
		mine != connection && nempty(up[connection]) ->
		up[connection]?HELLO(b, c);
		mine = connection
	   };
		joined = false;
#ifdef ONE_SECRET
		if
		:: b == current -> last++; current = last; next = current
		:: else -> goto end
		fi;
#else
		if
		:: b == current || b == next -> current = b; last++; next = last
		:: else -> goto end
		fi;
#endif
#ifndef FORGETS_SENT
		sent = c; /* again what the sidecar does not have */
#endif
#ifdef SENDS_UNACKNOWLEDGED
		send_down(WELCOME, next, c / 2)
#else
		send_down(WELCOME, next, executed)
#endif
	:: up[mine]?JOIN(b, c) -> current = b; next = NONE; joined = true
	:: up[mine]?COMMAND(b, c) ->
		assert(b == executed + 1);
		executed = b
#ifdef OLD_CONNECTION
	:: mine > 1 && up[mine - 1]?[COMMAND(_, _)] ->
		up[mine - 1]?COMMAND(b, c);
		assert(b == executed + 1);
		executed = b
#endif
	:: joined && sent < 2 * executed && mine == connection && nfull(down[mine]) ->
		sent++;
		/* Made while the command was executed, it does not acknowledge that yet. */
		if
		:: send_down(ANSWER, sent, (sent + 1) / 2)
		:: send_down(ANSWER, sent, (sent - 1) / 2)
		fi
	od
}
