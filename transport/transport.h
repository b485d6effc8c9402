/* SPDX-License-Identifier: Apache-2.0
 *
 * How bytes get from the sidecar to the worker and back.  A link is one session's pair of byte
 * streams, commands one way and replies the other, seen from one end: what this end sends and
 * what it receives.  A transport makes links; `fault` wraps another and breaks it by a plan.
 * transport/README.md says who owns what and who waits for whom.
 *
 * Addresses are strings: `native://HOST:PORT`, `tls://HOST:PORT`, `local://PATH`, and for fault
 * plans `fault+native://HOST:PORT?delay=200us&cut-after=3&truncate=40&stall-after=100`.
 *
 * Links never block after they are made.  A caller sleeps in poll() on link_fds() until
 * link_wake_at() at the latest (a delaying link has bytes that no descriptor announces).
 * A link belongs to one thread at a time.
 */
#ifndef VCUDA_TRANSPORT_TRANSPORT_H
#define VCUDA_TRANSPORT_TRANSPORT_H

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "common/error.h"
#include "common/instance_lock.h"
#include "protocol/wire/session.h"

struct link;
struct transport;

#define TRANSPORT_FDS 8	      /* connections that a link may have */
#define TRANSPORT_LISTENERS 8 /* descriptors that an agent listens on */
#define TRANSPORT_NAME 16     /* room for a row's name */

#define TRANSPORT_PLACE 448 /* bytes of a place; `fault` has another's in its own, and … */
#define TRANSPORT_INNER 384 /* … so much is had by others */

enum transport_end { TRANSPORT_CLIENT, TRANSPORT_AGENT };

/* Where a dialed link goes, for more connections to it; the bytes are the transport's own. */
struct transport_place {
	const struct transport *transport; /* NULL: no more can be had */
	_Alignas(8) unsigned char bytes[TRANSPORT_PLACE];
};

/* Who is at the other end of a connection, as the kernel knows it and not as he says. */
struct transport_peer {
	uint8_t key[16]; /* the same: the same machine, or whatever else is counted as one */
	char text[48];	 /* for logs and metrics */
};

static inline bool transport_same(
	const struct transport_peer *a, const struct transport_peer *b)
{
	return !memcmp(a->key, b->key, sizeof(a->key));
}

#define TRANSPORT_ROLE(role) (1u << (role)) /* of enum session_role */

/* No pointers: it travels from the supervisor to the front with the configuration. */
struct transport_listener {
	char transport[TRANSPORT_NAME];
	int fd;
	bool knocks;		       /* datagrams come there, see transport.knock */
	uint32_t roles;		       /* TRANSPORT_ROLE: those that are served here */
	struct instance_lock instance; /* socket "": it has no file */
};
struct transport_listening {
	unsigned count;
	struct transport_listener at[TRANSPORT_LISTENERS];
	/* Of transports that have ports: those to take (0 = any), and those that were taken (0
	 * = none). */
	struct transport_ports {
		uint16_t commands, replies;
	} wanted, taken;
};

/* Of an address. */
struct transport_description {
	char host[256]; /* whose HTTP port is the agent's */
	uint16_t port;	/* as the address says, else as it was before */
};

/* What an end shows and believes (transport_secure): files with PEM, which are read again when
 * they change. */
#define TRANSPORT_PATH 1024
struct transport_tls {
	char cert[TRANSPORT_PATH]; /* with the chain; the client's may be "" */
	char key[TRANSPORT_PATH];
	char ca[TRANSPORT_PATH]; /* who signs for the other side; the agent's may be "" */
	char name[256]; /* client: what the agent's certificate must name; "" = the host */
	bool require;	/* agent: a client without a certificate is refused */
};

/* Whom a client's certificate names: its subject's alternative names. */
struct transport_certificate {
	int64_t expires; /* Unix time; 0: none was shown */
	unsigned names;	 /* how many URIs there are, or DNS names where there is no URI */
	bool is_uri;
	char name[256]; /* if it is one; a longer one is "" */
};

/* Handshakes of this process: whole ones, those that a ticket shortened, and those that came to
 * nothing. */
struct transport_tls_counts {
	uint64_t full, resumed, failed;
	int64_t expires; /* the agent's own certificate, Unix time; 0: there is none */
};

/* A datagram that names a session; nobody has looked whether there is one. */
struct transport_knock {
	struct session_hello hello;
	struct transport_peer peer;
	_Alignas(8) unsigned char where[64]; /* the transport's own */
};

struct link_ops {
	/* Bytes taken (may be fewer), -EAGAIN, or -errno: the link is dead. */
	ssize_t (*send)(struct link *link, const struct iovec *iov, int count);
	/* Bytes got, 0 = the peer closed, -EAGAIN, or -errno. */
	ssize_t (*receive)(struct link *link, void *buffer, size_t n);
	/* All N bytes, however long it takes. 0, or -errno; -ECONNRESET: the peer closed. NULL:
	 * nobody does that with this kind of link. */
	int (*receive_all)(struct link *link, void *buffer, size_t n);
	/* Fills two entries: [0] for receiving (POLLIN), [1] for sending (POLLOUT where
	 * want_send). Either fd may be -1. */
	void (*fds)(struct link *link, struct pollfd fds[2], int want_send);
	/* CLOCK_MONOTONIC ns at which the caller should look again, or UINT64_MAX. */
	uint64_t (*wake_at)(struct link *link);
	/* Ends it for both sides; it stays to be closed. Any thread. */
	void (*shut)(struct link *link);
	void (*close)(struct link *link);
};

struct link {
	const struct link_ops *ops;
	struct transport_place place; /* of a link that was dialed */
};

static inline ssize_t link_send(struct link *link, const struct iovec *iov, int count)
{
	return link->ops->send(link, iov, count);
}
static inline ssize_t link_receive(struct link *link, void *buffer, size_t n)
{
	return link->ops->receive(link, buffer, n);
}
static inline int link_receive_all(struct link *link, void *buffer, size_t n)
{
	return link->ops->receive_all ? link->ops->receive_all(link, buffer, n) : -EOPNOTSUPP;
}
/* Who wants to know how fast a link takes what is sent. */
struct link_flow {
	uint64_t sent;			      /* bytes that it took are added */
	void (*full)(struct link_flow *flow); /* it takes no more now */
};
/* All of COUNT pieces, which it changes. 0; -ECANCELED once *STOP is set, which is looked at
 * each second at least; or another -errno. FLOW may be NULL. */
int link_send_all(struct link *link, struct iovec *iov, int count, const _Atomic bool *stop,
	struct link_flow *flow);
static inline void link_fds(struct link *link, struct pollfd fds[2], int want_send)
{
	link->ops->fds(link, fds, want_send);
}
static inline uint64_t link_wake_at(struct link *link)
{
	return link->ops->wake_at(link);
}
static inline void link_shut(struct link *link)
{
	link->ops->shut(link);
}
void link_close(struct link *link); /* NULL is fine */

/* A row of the table; a function that is NULL is not had (-EOPNOTSUPP). */
struct transport {
	const char *name;     /* the scheme */
	unsigned connections; /* that a link has, 1 … TRANSPORT_FDS */
	uint64_t feature;     /* of a session whose link has the last of them; 0: all have */
	bool clear;	      /* a network reads what it carries */
	bool shares;	      /* its ends can share memory: SESSION_FEATURE_LOCAL */
	bool far;	      /* made for long lines: much is under way at once */
	/* Agent's side: adds what listens on ADDRESS, with transport_listening_add. Nothing is
	 * added where it fails. 0, or -errno with *error. */
	int (*listen)(const char *address, struct transport_listening *listening,
		struct error *error);
	/* A connection that came, which does not block and is closed on exec, and who made it.
	 * fd, -EAGAIN or another -errno. */
	int (*accept)(int listener, struct transport_peer *peer);
	/* Front: a datagram that came to a listener that `knocks`. 0 and *knock; -EAGAIN; or
	 * -EPROTO: it is none of ours. */
	int (*knock)(int listener, struct transport_knock *knock);
	/* Front: a socket for whoever knocked, whose session was found. fd, or -errno. */
	int (*admit)(int listener, const struct transport_knock *knock);
	/* Worker: LINK's client comes from another address as well. Takes the descriptors. */
	int (*path)(struct link *link, const int *fds, unsigned count);
	/* Worker: stripe NUMBER of LINK, for which FDS came. As link, which is called where
	 * this is NULL. */
	int (*stripe)(struct link *link, unsigned number, const int *fds, unsigned count,
		struct link **stripe, struct error *error);
	/* Client side: dials, says HELLO (roles and, behind the first connection, session and
	 * secret are filled in by the transport), checks WELCOME.  0 and *link, NULL for a
	 * PROBE; or -errno with *error; a polite refusal is -ECONNREFUSED with welcome->status
	 * and text filled in. deadline: CLOCK_MONOTONIC ns. */
	int (*dial)(const char *address, const struct session_hello *hello,
		struct session_welcome *welcome, uint64_t deadline, struct link **link,
		struct error *error);
	/* A link over connections, in the order in which they were made; one alone is a stripe.
	 * Owns them once it returns 0. */
	int (*link)(const int *fds, unsigned count, enum transport_end end, struct link **link,
		struct error *error);
	/* What is said on a connection before there is a link: as stream_read and stream_write,
	 * which do it where these are NULL. -EPROTO: the peer is none of this transport's, and
	 * was told so where that is possible. */
	ssize_t (*read)(int fd, void *bytes, size_t n);
	int (*write)(int fd, const void *bytes, size_t n);
	/* What made read say -EPROTO, for people: memory that stays while FD does. NULL: not
	 * had. */
	const char *(*why)(int fd);
	/* FD, which is about to be closed or is another's now, is no connection any more. NULL:
	 * there is nothing to forget. */
	void (*forget)(int fd);
	/* Front: passes connections, which stay the caller's, to the worker behind SOCKET
	 * together with MESSAGE. 0; -EAGAIN where it has no room, or another -errno. */
	int (*handoff)(
		int socket, const void *message, size_t n, const int *fds, unsigned count);
	/* Client side: one more connection of a running session. HELLO has session and secret.
	 * 0, *number as the agent gave it and *stripe; or -errno with *error. With the role
	 * SESSION_RENEW it is asked and answered, and there is no stripe. */
	int (*open_stripe)(const struct transport_place *place,
		const struct session_hello *hello, uint64_t deadline, unsigned *number,
		struct link **stripe, struct error *error);
	/* An agent's side: one connection to another agent, in the role that HELLO has, for
	 * which it was said and answered. fd, for handoff; or -errno with *error. NULL: not
	 * had. */
	int (*join)(const char *address, const struct session_hello *hello, uint64_t deadline,
		struct error *error);
	/* Agent's side: the certificate that the peer of FD showed, which was checked. NULL:
	 * not had. */
	void (*certificate)(int fd, struct transport_certificate *certificate);
	/* For transport_tls_counts. */
	void (*counts)(struct transport_tls_counts *counts);
	/* For transport_secure. */
	int (*secure)(enum transport_end end, const struct transport_tls *settings,
		struct error *error);
	/* Whether ADDRESS is one: 0 and *description; or -EINVAL with *error. */
	int (*describe)(const char *address, struct transport_description *description,
		struct error *error);
};

/* From now on this process, as END, goes over networks with TLS alone: an address without a
 * scheme is a tls one, and a native one is an error. Any number of times; the files are read,
 * and again when they change. 0, or -errno with *error naming the file. */
int transport_secure(
	enum transport_end end, const struct transport_tls *settings, struct error *error);

/* From now on an address without a scheme is one of the transport NAME's, which goes over TCP:
 * native, light. Before other threads start. 0, or -EINVAL with *error. */
int transport_assume(const char *name, struct error *error);

/* From now on TCP connections of links have the kernel's congestion control NAME ("": its
 * default), where it has that and lets this process choose it; else the log says so, once.
 * Before other threads start. 0, or -EINVAL with *error: that is no name of one. */
int transport_congestion(const char *name, struct error *error);

/* The client's own token, for each HELLO from now on: what PATH holds, which is read again when
 * it changes, at most once a second. It is signed, too long for HELLO's field, and everybody's
 * who reads it: CLEAR says that it may go over a network in the clear. 0, or -errno with *error
 * naming the file. */
int transport_credential(const char *path, bool clear, struct error *error);

/* Whether others on the network can read what TRANSPORT carries. */
static inline bool transport_is_clear(const struct transport *transport)
{
	return transport->clear;
}

/* All 0 where there is no TLS. Any thread. */
void transport_tls_counts(struct transport_tls_counts *counts);

/* By the address's scheme (none: native, or tls); NULL with *error naming what is known. */
const struct transport *transport_find(const char *address, struct error *error);

/* transport.read, write, and forget with a close behind it. */
ssize_t transport_read(const struct transport *transport, int fd, void *bytes, size_t n);
int transport_write(const struct transport *transport, int fd, const void *bytes, size_t n);
void transport_drop(const struct transport *transport, int fd);

/* How many connections the link of a session with these FEATURES has. */
static inline unsigned transport_connections(
	const struct transport *transport, uint64_t features)
{
	bool fewer = transport->feature && !(features & transport->feature);

	return transport->connections - fewer;
}

/* By its name; NULL: there is none. */
const struct transport *transport_named(const char *name);
/* Row INDEX of the table; NULL behind the last. */
const struct transport *transport_at(size_t index);

/* transport_find and dial in one. */
int transport_dial(const char *address, const struct session_hello *hello,
	struct session_welcome *welcome, uint64_t deadline, struct link **link,
	struct error *error);

/* TOLD(argument, welcome) hears from now on, for each dial of this thread, what its first
 * connection was told, before anybody is shown the secret in it. NULL: nobody does. */
void transport_when_told(
	void (*told)(void *argument, const struct session_welcome *welcome), void *argument);

/* The address that this end of a connection over IP has, as it stands before ':PORT'. 0, or
 * -errno: it is none. */
int transport_own_address(int fd, char host[64]);

/* Takes a fault plan off ADDRESS: it is for the wire between a sidecar and an agent, not for
 * connections that others make to that agent. */
void transport_plain(char *address);

/* transport_find and join in one. */
int transport_join(const char *address, const struct session_hello *hello, uint64_t deadline,
	const struct transport **transport, struct error *error);

/* Whether LIST (commas between: NAME, *.NAME, ADDRESS or ADDRESS/BITS, each with :PORT or :*
 * behind it, else port SESSION_PORT_RECV) is one. 0, or -EINVAL with *error. */
int transport_check_allowed(const char *list, struct error *error);
/* Whether it names ADDRESS, as it is written: a name is found by its name alone. */
bool transport_allowed(const char *list, const char *address);
/* The same, and names of the list (which are whoever wrote it) stand for their addresses, too:
 * they are looked up, which waits for the name service. */
bool transport_allowed_by_name(const char *list, const char *address);

/* transport_find and describe in one. */
int transport_describe(const char *address, uint16_t default_port,
	struct transport_description *description, struct error *error);

/* Calls ADD for each address that ADDRESS stands for: without a scheme all of a host's, else
 * the address itself, and so where TLS is for the host's own name (transport_tls.name is
 * empty). 0, or -errno with *error. */
int transport_expand(const char *address, void (*add)(void *argument, const char *address),
	void *argument, struct error *error);

/* transport_find and listen in one, for each of ADDRESSES (commas between; "" is one, too).
 * 0, or -errno with *error and nothing listening. */
int transport_listen(
	const char *addresses, struct transport_listening *listening, struct error *error);
/* Whether ADDRESSES are such, as far as can be known without a name service and without
 * listening. 0, or -errno with *error. */
int transport_check_listen(const char *addresses, struct error *error);
/* Closes what listens, and removes its files. */
void transport_unlisten(struct transport_listening *listening);

/* For transport.listen: FD, which it takes; INSTANCE: the file that belongs to it, or NULL. 0,
 * or -errno with *error and both released. */
int transport_listening_add(struct transport_listening *listening,
	const struct transport *transport, int fd, uint32_t roles,
	const struct instance_lock *instance, struct error *error);

#endif
