/* SPDX-License-Identifier: Apache-2.0
 *
 * What of the sidecar there is not on Windows, and says so where it is asked for: every
 * transport but native, a configuration file, the taking over of another sidecar's session,
 * compressed payloads.
 */
#include <errno.h>
#include <stddef.h>

#include "common/config.h"
#include "common/instance_lock.h"
#include "sidecar/channel/channel.h"
#include "sidecar/channel/local.h"
#include "transport/codec/codec.h"
#include "transport/transport.h"

#define REFUSED "%s:// is not had on Windows: native:// is (docs/WINDOWS.md)"

/* A row of transport.c that only refuses. */
#define ABSENT(row)                                                                            \
	static int describe_##row(const char *address,                                         \
		struct transport_description *description, struct error *error)                \
	{                                                                                      \
		(void)address, (void)description;                                              \
		return error_set(error, 0, REFUSED, #row);                                     \
	}                                                                                      \
	extern const struct transport transport_##row;                                         \
	const struct transport transport_##row = {                                             \
		.name = #row, .connections = 1, .describe = describe_##row}

ABSENT(tls);
ABSENT(light);
ABSENT(unix);
ABSENT(local);
ABSENT(loop);

void instance_lock_release(struct instance_lock *lock)
{
	(void)lock; /* nobody listens */
}

int config_read(const char *path, config_set set, void *argument, struct error *error)
{
	(void)set, (void)argument;
	return error_set(error, 0,
		"%s: a configuration file is not read on Windows: the environment is", path);
}

int config_read_bytes(const char *name, const void *bytes, size_t n, config_set set,
	void *argument, struct error *error)
{
	(void)bytes, (void)n;
	return config_read(name, set, argument, error);
}

int adopt_adopt(struct channel *channel, const struct channel_request *request)
{
	(void)channel, (void)request;
	return -EOPNOTSUPP;
}

int adopt_resumed(struct channel *channel, uint64_t taken, struct error *error)
{
	(void)channel, (void)taken;
	return error_set(error, EOPNOTSUPP, "adoption");
}

/* ---- a worker on this machine: none is, and HELLO does not ask for it ---- */

unsigned local_shared(char paths[LOCAL_SHARED_MOST][LOCAL_SHARED_SIZE])
{
	(void)paths;
	return 0;
}

bool local_is_shared(const char *path)
{
	(void)path;
	return false;
}

void local_hearing_init(struct local_hearing *hearing)
{
	(void)hearing;
}

void local_hearing_fini(struct local_hearing *hearing)
{
	(void)hearing;
}

int local_attach(struct channel *channel, uint64_t deadline, struct error *error)
{
	(void)channel, (void)deadline;
	return error_set(error, EPROTO, "the agent grants what was not asked for");
}

int local_resume(struct channel *channel, struct error *error)
{
	return local_attach(channel, 0, error);
}

int local_pin(struct channel *channel, uint32_t number, struct error *error)
{
	(void)number;
	return local_attach(channel, 0, error);
}

void local_unpin(struct channel *channel, uint32_t number)
{
	(void)channel, (void)number;
}

void local_turn(struct channel *channel)
{
	(void)channel;
}

/* ---- coded payloads: HELLO does not ask for them, so none comes ---- */

struct codec *codec_new(void)
{
	return NULL;
}

void codec_free(struct codec *codec)
{
	(void)codec;
}

bool codec_is_fill(const void *bytes, uint32_t n, unsigned char *byte)
{
	(void)bytes, (void)n, (void)byte;
	return false;
}

void codec_guess(struct codec *codec, const void *bytes, uint32_t n, struct codec_guess *guess)
{
	(void)codec, (void)bytes, (void)n;
	for (unsigned kind = 0; kind < CODEC_KINDS; kind++)
		guess->ratio[kind] = 1;
}

uint32_t codec_encode(struct codec *codec, enum codec_kind kind, const void *bytes, uint32_t n,
	const unsigned char **coded)
{
	(void)codec, (void)kind, (void)bytes, (void)n, (void)coded;
	return 0;
}

unsigned char *codec_input(struct codec *codec)
{
	(void)codec;
	return NULL;
}

int codec_decode(struct codec *codec, uint32_t coded_n, void *to, uint32_t n)
{
	(void)codec, (void)coded_n, (void)to, (void)n;
	return -EPROTO;
}

bool codec_fills(const struct codec *codec, uint32_t coded_n, unsigned char *byte)
{
	(void)codec, (void)coded_n, (void)byte;
	return false;
}
