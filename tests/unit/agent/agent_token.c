/* SPDX-License-Identifier: Apache-2.0
 *
 * The token file: who each line stands for, what is refused and how it is told, and that no
 * error repeats what may be a secret.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "gpu-agent/supervisor/settings/token.h"

static char path[] = "/tmp/agent-tokens-XXXXXX";
static struct agent_tokens tokens;
static struct error error;

static int put(const char *text)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
	assert_int_equal(fclose(file), 0);
	memset(&error, 0, sizeof(error));
	return token_read(&tokens, path, &error);
}

static const struct agent_tenant *who(const char *token)
{
	char offered[AGENT_TOKEN_MAX + 1] = "";
	int i;

	assert_true(strlen(token) < sizeof(offered));
	memcpy(offered, token, strlen(token));
	i = token_find(&tokens, offered);
	return i < 0 ? NULL : &tokens.list[i];
}

static void one_token_alone(void **state)
{
	char long_one[300];

	(void)state;
	assert_int_equal(put("sesame\n"), 0);
	assert_string_equal(who("sesame")->name, "default");
	assert_int_equal(who("sesame")->bytes, 0);
	assert_int_equal(who("sesame")->sessions, 0);
	assert_null(who("sesam"));
	assert_null(who("sesame\n"));
	assert_null(who(""));
	assert_int_equal(put("sesame"), 0); /* without a newline, and with another system's */
	assert_non_null(who("sesame"));
	assert_int_equal(put("sesame\r\n"), 0);
	assert_non_null(who("sesame"));
	memset(long_one, 'x', 255);
	long_one[255] = 0;
	assert_int_equal(put(long_one), 0);
	assert_non_null(who(long_one));
}

static void each_line_is_a_tenant(void **state)
{
	(void)state;
	assert_int_equal(put("# who may\n\n"
			     "t0ken-a team-a 8GiB 4\n"
			     "\tt0ken-b\tteam/b   64Mi # twice a day\n"
			     "t0ken-c team.c\n"
			     "t0ken-d team_d 0 7\n"),
		0);
	assert_int_equal(tokens.count, 4);
	assert_string_equal(tokens.file, path);
	assert_string_equal(who("t0ken-a")->name, "team-a");
	assert_int_equal(who("t0ken-a")->bytes, 8ull << 30);
	assert_int_equal(who("t0ken-a")->sessions, 4);
	assert_string_equal(who("t0ken-b")->name, "team/b");
	assert_int_equal(who("t0ken-b")->bytes, 64ull << 20);
	assert_int_equal(who("t0ken-b")->sessions, 0);
	assert_int_equal(who("t0ken-c")->bytes, 0);
	assert_int_equal(who("t0ken-d")->sessions, 7);
	assert_null(who("# who may"));
	assert_null(who("t0ken-a team-a 8GiB 4"));
}

/* To change a token, both are there for a while. */
static void one_tenant_may_have_two_tokens(void **state)
{
	(void)state;
	assert_int_equal(put("old team 1Gi 2\nnew team 1Gi 2\n"), 0);
	assert_string_equal(who("old")->name, "team");
	assert_string_equal(who("new")->name, "team");
}

static void refused(const char *text, int line, const char *words)
{
	char where[64];

	assert_int_equal(put("kept"), 0);
	assert_true(put(text) < 0);
	snprintf(where, sizeof(where), line ? "token_file: %s:%d: " : "token_file: %s: ", path,
		line);
	if (strncmp(error.text, where, strlen(where)) || !strstr(error.text, words))
		fail_msg("'%s' should begin with '%s' and say '%s'", error.text, where, words);
	assert_null(strstr(error.text, "s3cret"));
	assert_non_null(who("kept")); /* nothing has changed */
}

static void errors_name_the_line_and_no_secret(void **state)
{
	char many[AGENT_TOKENS * 16 + 32] = "", long_one[300];

	(void)state;
	refused("", 0, "no token in it");
	refused("\n# nothing\n", 0, "no token in it");
	refused("a team\ns3cret te\"am\n", 2, "no tenant's name");
	refused("s3cret team big\n", 1, "not bytes of device memory");
	refused("s3cret team 99999999Ti\n", 1, "not bytes of device memory");
	refused("s3cret team -1\n", 1, "not bytes of device memory");
	refused("s3cret team 1Gi many\n", 1, "not a number of sessions");
	refused("s3cret team 1Gi 5000\n", 1, "not a number of sessions");
	refused("s3cret team 1Gi 1 more\n", 1, "more than TOKEN NAME");
	refused("s3cret a\nx b\ns3cret c\n", 3, "another line's too");
	refused("s3cret a 1Gi\nx a 2Gi\n", 2, "'a' has other limits");
	memset(long_one, 'x', 256);
	long_one[256] = 0;
	refused(long_one, 1, "1 to 255 bytes");
	for (int i = 0; i <= AGENT_TOKENS; i++)
		snprintf(many + strlen(many), 16, "t%d n%d\n", i, i);
	refused(many, AGENT_TOKENS + 1, "more than 256 tokens");
	unlink(path);
	assert_true(token_read(&tokens, path, &error) < 0);
	assert_non_null(strstr(error.text, "No such file"));
}

static void without_tokens_none_is_found(void **state)
{
	char nothing[AGENT_TOKEN_MAX + 1] = "", full[AGENT_TOKEN_MAX + 1];

	(void)state;
	memset(&tokens, 0, sizeof(tokens)); /* hashes of zeros are nobody's */
	assert_int_equal(token_find(&tokens, nothing), -1);
	assert_int_equal(token_set(&tokens, "open sesame"), 0);
	assert_non_null(who("open sesame"));
	assert_int_equal(token_find(&tokens, nothing), -1);
	memset(full, 'x', sizeof(full)); /* without a NUL */
	assert_int_equal(token_find(&tokens, full), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_token_alone),
		cmocka_unit_test(each_line_is_a_tenant),
		cmocka_unit_test(one_tenant_may_have_two_tokens),
		cmocka_unit_test(errors_name_the_line_and_no_secret),
		cmocka_unit_test(without_tokens_none_is_found),
	};
	int fd = mkstemp(path), ret;

	if (fd < 0)
		return 1;
	close(fd);
	ret = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(path);
	return ret;
}
