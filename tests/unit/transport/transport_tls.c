/* SPDX-License-Identifier: Apache-2.0
 *
 * TLS 1.3 records: what RFC 8448 prints, links over them with every cut of the stream, a key
 * that is used up, records of a peer that violates the protocol, and which addresses a name
 * stands for.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "transport/tls/link.h"
#include "transport/transport.h"

/* RFC 8448, 3: the client's application traffic secret, and its first record. */
static const struct record_keys rfc_keys = {
	.secret = {0x9e, 0x40, 0x64, 0x6c, 0xe7, 0x9a, 0x7f, 0x9d, 0xc0, 0x5a, 0xf8, 0x88, 0x9b,
		0xce, 0x65, 0x52, 0x87, 0x5a, 0xfa, 0x0b, 0x06, 0xdf, 0x00, 0x87, 0xf7, 0x92,
		0xeb, 0xb7, 0xc1, 0x75, 0x04, 0xa5}};
static const unsigned char rfc_record[] = {0x17, 0x03, 0x03, 0x00, 0x43, 0xa2, 0x3f, 0x70, 0x54,
	0xb6, 0x2c, 0x94, 0xd0, 0xaf, 0xfa, 0xfe, 0x82, 0x28, 0xba, 0x55, 0xcb, 0xef, 0xac,
	0xea, 0x42, 0xf9, 0x14, 0xaa, 0x66, 0xbc, 0xab, 0x3f, 0x2b, 0x98, 0x19, 0xa8, 0xa5,
	0xb4, 0x6b, 0x39, 0x5b, 0xd5, 0x4a, 0x9a, 0x20, 0x44, 0x1e, 0x2b, 0x62, 0x97, 0x4e,
	0x1f, 0x5a, 0x62, 0x92, 0xa2, 0x97, 0x70, 0x14, 0xbd, 0x1e, 0x3d, 0xea, 0xe6, 0x3a,
	0xee, 0xbb, 0x21, 0x69, 0x49, 0x15, 0xe4};

static int seal(struct record_half *half, enum record_type type, const void *bytes, size_t n,
	unsigned char *out)
{
	const struct iovec iov = {(void *)bytes, n};
	size_t offset = 0;
	int at = 0;

	return record_seal(half, type, &iov, &at, &offset, n, out);
}

static void records_are_the_rfcs(void **state)
{
	unsigned char plain[50], out[128];
	struct record_half half;
	enum record_type type;

	(void)state;
	for (unsigned char i = 0; i < sizeof(plain); i++)
		plain[i] = i;
	assert_int_equal(record_open(&half, &rfc_keys, true), 0);
	assert_int_equal(
		seal(&half, RECORD_DATA, plain, sizeof(plain), out), sizeof(rfc_record));
	assert_memory_equal(out, rfc_record, sizeof(rfc_record));
	record_close(&half);

	assert_int_equal(record_open(&half, &rfc_keys, false), 0);
	assert_int_equal(record_length(rfc_record), sizeof(rfc_record) - RECORD_HEADER);
	assert_int_equal(
		record_unseal(&half, rfc_record, record_length(rfc_record), out, &type), 50);
	assert_int_equal(type, RECORD_DATA);
	assert_memory_equal(out, plain, sizeof(plain));
	record_close(&half);
}

/* Any bit, the order, a record twice: none of it is taken, and the next right one still is. */
static void changed_records_are_refused(void **state)
{
	unsigned char record[256], changed[256], out[256];
	struct record_half sender, receiver;
	enum record_type type;
	int n;

	(void)state;
	assert_int_equal(record_open(&sender, &rfc_keys, true), 0);
	assert_int_equal(record_open(&receiver, &rfc_keys, false), 0);
	n = seal(&sender, RECORD_DATA, "frame", 5, record);
	for (int bit = 0; bit < 8 * n; bit++) {
		memcpy(changed, record, (size_t)n);
		changed[bit / 8] ^= (unsigned char)(1 << bit % 8);
		assert_int_equal(
			record_unseal(&receiver, changed, n - RECORD_HEADER, out, &type),
			-EBADMSG);
	}
	assert_int_equal(record_unseal(&receiver, record, n - RECORD_HEADER, out, &type), 5);
	assert_int_equal(
		record_unseal(&receiver, record, n - RECORD_HEADER, out, &type), -EBADMSG);
	assert_int_equal(record_update(&sender), 0);
	n = seal(&sender, RECORD_DATA, "frame", 5, record);
	assert_int_equal(
		record_unseal(&receiver, record, n - RECORD_HEADER, out, &type), -EBADMSG);
	assert_int_equal(record_update(&receiver), 0);
	assert_int_equal(record_unseal(&receiver, record, n - RECORD_HEADER, out, &type), 5);
	record_close(&sender);
	record_close(&receiver);
}

static void headers_are_checked(void **state)
{
	static const unsigned char wrong[][RECORD_HEADER] = {{0x16, 3, 3, 0, 100},
		{0x17, 3, 1, 0, 100}, {0x17, 3, 3, 0, 16}, {0x17, 3, 3, 0x41, 0x01},
		{0x17, 3, 3, 0xff, 0xff}, {'V', 'C', 'U', 'D', 'A'}};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(record_length(wrong[i]), -EPROTO);
}

/* --- links -------------------------------------------------------------------------------- */

struct pair {
	struct link *client, *agent;
	int raw[2]; /* other descriptors of the same sockets, to look and to lie */
};

static struct pair pair_at(uint64_t sequence, int buffer)
{
	struct tls_state client = {
		.send = {.secret = {1}, .sequence = sequence},
		.receive = {.secret = {2}, .sequence = sequence},
	};
	struct tls_state agent = {.send = client.receive, .receive = client.send};
	struct pair pair;
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	assert_int_equal(
		tls_link_open(&fds[0], &client, 1, TRANSPORT_CLIENT, &pair.client, NULL), 0);
	assert_int_equal(
		tls_link_open(&fds[1], &agent, 1, TRANSPORT_AGENT, &pair.agent, NULL), 0);
	for (int i = 0; i < 2; i++) {
		if (buffer)
			setsockopt(fds[i], SOL_SOCKET, SO_SNDBUF, &buffer, sizeof(buffer));
		pair.raw[i] = dup(fds[i]);
	}
	return pair;
}

static void close_pair(struct pair *pair)
{
	link_close(pair->client);
	link_close(pair->agent);
	for (int i = 0; i < 2; i++)
		close(pair->raw[i]);
}

/* N bytes one way, in pieces of random lengths, received in others; both ends in one thread, so
 * the socket is full again and again and sends are cut anywhere. */
static void carry(struct link *from, struct link *to, size_t n, unsigned seed)
{
	unsigned char *sent = malloc(n), *got = malloc(n);
	size_t out = 0, in = 0;

	for (size_t i = 0; i < n; i++)
		sent[i] = (unsigned char)(i * 7 + seed);
	srand(seed);
	while (in < n || out < n) {
		struct iovec iov[8];
		size_t at = out, most;
		int count = 0;
		ssize_t ret;

		while (count < 8 && at < n) {
			size_t piece = (size_t)(rand() % 5 ? rand() % 300 : rand() % 200000);

			piece = piece < n - at ? piece : n - at;
			iov[count++] = (struct iovec){sent + at, piece};
			at += piece;
		}
		ret = at > out ? link_send(from, iov, count) : -EAGAIN;
		assert_true(ret >= 0 || ret == -EAGAIN);
		out += ret > 0 ? (size_t)ret : 0;
		if (in == n)
			continue;
		most = (size_t)(rand() % 3 ? 1 + rand() % 60000 : 1 + rand() % 20);
		ret = link_receive(to, got + in, most < n - in ? most : n - in);
		assert_true(ret > 0 || ret == -EAGAIN);
		in += ret > 0 ? (size_t)ret : 0;
	}
	assert_int_equal(out, n);
	assert_memory_equal(sent, got, n);
	assert_int_equal(link_wake_at(to), UINT64_MAX);
	free(sent);
	free(got);
}

static void links_carry_what_was_sent(void **state)
{
	static const int buffers[] = {0, 4096, 100000};

	(void)state;
	for (unsigned seed = 0; seed < 12; seed++) {
		struct pair pair = pair_at(0, buffers[seed % 3]);

		carry(pair.client, pair.agent, 1 << 20, seed);
		carry(pair.agent, pair.client, 300000, seed);
		close_pair(&pair);
	}
}

/* At the limit the sender says that it takes the next key, and takes it. */
static void keys_are_used_up(void **state)
{
	const struct record_keys keys = {.secret = {1}, .sequence = RECORD_LIMIT - 2};
	struct pair pair = pair_at(RECORD_LIMIT - 2, 0);
	unsigned char bytes[1024], plain[64], *at = bytes;
	struct iovec iov = {"x", 1};
	struct record_half half;
	enum record_type type;

	(void)state;
	for (int i = 0; i < 4; i++)
		assert_int_equal(link_send(pair.client, &iov, 1), 1);
	assert_true(recv(pair.raw[1], bytes, sizeof(bytes), MSG_PEEK) > 0);
	assert_int_equal(record_open(&half, &keys, false), 0);
	for (int i = 0; i < 5; i++) {
		int body = record_length(at);

		assert_int_equal(record_unseal(&half, at, body, plain, &type), i == 2 ? 5 : 1);
		assert_int_equal(type, i == 2 ? RECORD_HANDSHAKE : RECORD_DATA);
		if (i == 2)
			assert_memory_equal(plain, "\x18\0\0\1\0", 5);
		if (i == 2)
			assert_int_equal(record_update(&half), 0);
		at += RECORD_HEADER + body;
	}
	record_close(&half);
	assert_int_equal(link_receive(pair.agent, plain, sizeof(plain)), 4);
	close_pair(&pair);
	pair = pair_at(RECORD_LIMIT - 10, 0);
	carry(pair.client, pair.agent, 4 << 20, 1);
	carry(pair.agent, pair.client, 4 << 20, 2);
	close_pair(&pair);
}

static void what_was_read_ahead_wakes(void **state)
{
	struct pair pair = pair_at(0, 0);
	char bytes[100] = "";
	struct iovec iov = {bytes, sizeof(bytes)};

	(void)state;
	assert_int_equal(link_wake_at(pair.agent), UINT64_MAX);
	for (int i = 0; i < 2; i++)
		assert_int_equal(link_send(pair.client, &iov, 1), sizeof(bytes));
	assert_int_equal(link_receive(pair.agent, bytes, 10), 10);
	assert_int_equal(link_wake_at(pair.agent), 0);
	assert_int_equal(link_receive(pair.agent, bytes, 90), 90);
	assert_int_equal(link_wake_at(pair.agent), 0); /* the second record */
	assert_int_equal(link_receive(pair.agent, bytes, 100), 100);
	assert_int_equal(link_wake_at(pair.agent), UINT64_MAX);
	assert_int_equal(link_receive(pair.agent, bytes, 100), -EAGAIN);
	close_pair(&pair);
}

/* One record of a client that knows the keys, of whatever kind. */
static int told(enum record_type type, const void *bytes, size_t n)
{
	const struct record_keys keys = {.secret = {1}};
	struct pair pair = pair_at(0, 0);
	struct record_half half;
	unsigned char record[RECORD_PLAIN + RECORD_OVERHEAD], got[64];
	int length, ret;

	assert_int_equal(record_open(&half, &keys, true), 0);
	length = seal(&half, type, bytes, n, record);
	assert_int_equal(write(pair.raw[0], record, (size_t)length), length);
	ret = (int)link_receive(pair.agent, got, sizeof(got));
	if (ret < 0 && ret != -EAGAIN) /* for good */
		assert_int_equal(link_receive(pair.agent, got, sizeof(got)), ret);
	record_close(&half);
	close_pair(&pair);
	return ret;
}

static void records_that_have_no_place(void **state)
{
	static const unsigned char update_both[] = {24, 0, 0, 1, 1}, ticket[] = {4, 0, 0, 1, 0},
				   two[] = {24, 0, 0, 1, 0, 24, 0, 0, 1, 0}, over[] = {1, 0};

	(void)state;
	assert_int_equal(told(RECORD_DATA, "frame", 5), 5);
	assert_int_equal(told(RECORD_DATA, "", 0), -EAGAIN);
	assert_int_equal(told(RECORD_HANDSHAKE, update_both, sizeof(update_both)), -EPROTO);
	assert_int_equal(told(RECORD_HANDSHAKE, ticket, sizeof(ticket)), -EPROTO);
	assert_int_equal(told(RECORD_HANDSHAKE, two, sizeof(two)), -EPROTO);
	assert_int_equal(told(RECORD_CHANGE_CIPHER, "\1", 1), -EPROTO);
	assert_int_equal(told((enum record_type)99, "x", 1), -EPROTO);
	assert_int_equal(told((enum record_type)0, "", 0), -EPROTO); /* nothing but padding */
	assert_int_equal(told(RECORD_ALERT, over, sizeof(over)), -ECONNRESET);
}

/* Without the keys: nonsense, and a record that never ends. */
static void bytes_of_a_stranger(void **state)
{
	struct pair pair = pair_at(0, 0);
	unsigned char bytes[RECORD_HEADER + RECORD_BODY_MAX] = {0x17, 3, 3, 0x41, 0}, got[64];

	(void)state;
	assert_int_equal(write(pair.raw[0], bytes, sizeof(bytes) - 1), sizeof(bytes) - 1);
	assert_int_equal(link_receive(pair.agent, got, sizeof(got)), -EAGAIN);
	assert_int_equal(link_wake_at(pair.agent), UINT64_MAX);
	assert_int_equal(write(pair.raw[0], bytes, 1), 1);
	assert_int_equal(link_receive(pair.agent, got, sizeof(got)), -EBADMSG);
	close_pair(&pair);

	pair = pair_at(0, 0);
	assert_int_equal(write(pair.raw[0], "GET / HTTP/1.1", 14), 14);
	assert_int_equal(link_receive(pair.agent, got, sizeof(got)), -EPROTO);
	close_pair(&pair);
}

static void note_address(void *told, const char *address)
{
	strcat(strcat(told, address), " ");
}

/* One name for all agents: each address of a host may be asked. Without it the host's own name
 * is what the certificate must name. */
static void addresses_under_one_name(void **state)
{
	static struct transport_tls settings = {.name = "agents.example"};
	char command[256], told[600] = "";
	struct error error;
	int fd;

	(void)state;
	strcpy(settings.ca, "/tmp/vcuda-ca-XXXXXX");
	fd = mkstemp(settings.ca);
	assert_true(fd >= 0);
	close(fd);
	snprintf(command, sizeof(command),
		"openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 "
		"-subj /CN=ca -keyout /dev/null -out %.60s 2>/dev/null",
		settings.ca);
	assert_int_equal(system(command), 0);
	assert_int_equal(transport_secure(TRANSPORT_CLIENT, &settings, &error), 0);
	assert_int_equal(transport_expand("127.0.0.1:9", note_address, told, &error), 0);
	assert_int_equal(transport_expand("localhost:9", note_address, told, &error), 0);
	assert_string_equal(strtok(told, " "), "127.0.0.1:9");
	assert_null(strstr(strtok(NULL, ""), "localhost"));
	told[0] = 0;
	assert_int_equal(transport_expand("tls://localhost:9", note_address, told, &error), 0);
	assert_string_equal(told, "tls://localhost:9 ");

	told[0] = settings.name[0] = 0;
	assert_int_equal(transport_secure(TRANSPORT_CLIENT, &settings, &error), 0);
	assert_int_equal(transport_expand("localhost:9", note_address, told, &error), 0);
	assert_string_equal(told, "localhost:9 ");
	unlink(settings.ca);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(records_are_the_rfcs),
		cmocka_unit_test(changed_records_are_refused),
		cmocka_unit_test(headers_are_checked),
		cmocka_unit_test(links_carry_what_was_sent),
		cmocka_unit_test(keys_are_used_up),
		cmocka_unit_test(what_was_read_ahead_wakes),
		cmocka_unit_test(records_that_have_no_place),
		cmocka_unit_test(bytes_of_a_stranger),
		cmocka_unit_test(addresses_under_one_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
