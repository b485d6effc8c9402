/* SPDX-License-Identifier: Apache-2.0
 *
 * HTTP/1.0, so that an answer ends with the connection and comes in one piece.
 */
#include "gpu-agent/keeper/api.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/wait.h"
#include "transport/tcp.h"

#define API_SECONDS 30
#define STEP_SECONDS 10
#define ANSWER_MAX ((size_t)4 << 20)
#define TOKEN_MAX 16384

static int read_token(struct api *api, const char *path, struct error *error)
{
	cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return error_set(error, errno, "%s", path);
	api->token = calloc(1, TOKEN_MAX);
	if (!api->token)
		return error_set(error, ENOMEM, "%s", path);
	n = read(fd, api->token, TOKEN_MAX - 1);
	if (n < 0)
		return error_set(error, errno, "%s", path);
	api->token[strcspn(api->token, "\r\n")] = 0;
	if (!*api->token || n == TOKEN_MAX - 1)
		return error_set(error, 0, "%s: no token of a ServiceAccount", path);
	return 0;
}

int api_open(struct api *api, const char *account, struct error *error)
{
	const char *host = getenv("KUBERNETES_SERVICE_HOST");
	const char *port = getenv("KUBERNETES_SERVICE_PORT");
	char path[512];
	int ret;

	*api = (struct api){0};
	if (!host || !*host || !port || !*port)
		return error_set(
			error, 0, "no KUBERNETES_SERVICE_HOST and _PORT: this runs in a pod");
	if (snprintf(api->host, sizeof(api->host), "%s", host) >= (int)sizeof(api->host) ||
		sscanf(port, "%hu", &api->port) != 1)
		return error_set(error, 0, "KUBERNETES_SERVICE_HOST and _PORT: no address");
	snprintf(path, sizeof(path), "%s/token", account);
	ret = read_token(api, path, error);
	if (ret)
		goto failed;
	snprintf(path, sizeof(path), "%s/ca.crt", account);
	api->context = SSL_CTX_new(TLS_client_method());
	ret = !api->context || !SSL_CTX_set_min_proto_version(api->context, TLS1_2_VERSION) ||
	      SSL_CTX_load_verify_locations(api->context, path, NULL) != 1;
	if (ret) {
		ret = error_set(error, 0, "%s: no certificates of a CA", path);
		goto failed;
	}
	SSL_CTX_set_verify(api->context, SSL_VERIFY_PEER, NULL);
	return 0;
failed:
	api_close(api);
	return ret;
}

void api_close(struct api *api)
{
	SSL_CTX_free(api->context);
	if (api->token)
		OPENSSL_cleanse(api->token, strlen(api->token));
	free(api->token);
	*api = (struct api){0};
}

/* An address in a certificate is no name. */
static bool expect(SSL *tls, const char *host)
{
	X509_VERIFY_PARAM *wanted = SSL_get0_param(tls);

	return X509_VERIFY_PARAM_set1_ip_asc(wanted, host) == 1 ||
	       (X509_VERIFY_PARAM_set1_host(wanted, host, 0) == 1 &&
		       SSL_set_tlsext_host_name(tls, host) == 1);
}

static int handshake(SSL *tls, const struct api *api, int fd, struct error *error)
{
	long verified;

	if (!expect(tls, api->host) || !SSL_set_fd(tls, fd))
		return error_set(error, ENOMEM, "TLS with the API server");
	if (SSL_connect(tls) == 1)
		return 0;
	verified = SSL_get_verify_result(tls);
	return error_set(error, EPROTO, "TLS with the API server at %s:%u (%s)", api->host,
		api->port,
		verified != X509_V_OK ? X509_verify_cert_error_string(verified)
				      : "no handshake");
}

/* All that comes until the end, with a 0 behind it. */
static int read_all(SSL *tls, char *answer, struct error *error)
{
	uint64_t deadline = wait_now() + API_SECONDS * 1000000000ull;
	size_t got = 0;

	for (;;) {
		int n = SSL_read(tls, answer + got, (int)(ANSWER_MAX - got));

		if (n <= 0 && SSL_get_error(tls, n) == SSL_ERROR_ZERO_RETURN)
			break;
		if (n <= 0 || wait_now() > deadline)
			return error_set(error, ETIMEDOUT, "the API server's answer");
		got += (size_t)n;
		if (got == ANSWER_MAX)
			return error_set(error, EMSGSIZE, "the API server's answer");
	}
	answer[got] = 0;
	return 0;
}

/* What the server says of its own refusal, where it does. */
static int refused(
	int status, const char *what, const char *path, const char *body, struct error *error)
{
	static const struct {
		int status, code;
	} codes[] = {{404, ENOENT}, {401, EACCES}, {403, EACCES}, {409, EAGAIN}};
	cJSON *root = cJSON_Parse(body);
	const cJSON *message = cJSON_GetObjectItemCaseSensitive(root, "message");
	int code = EPROTO;

	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
		if (codes[i].status == status)
			code = codes[i].code;
	error_set(error, 0, "%s %s: the API server says %d%s%.120s", what, path, status,
		cJSON_IsString(message) ? ", " : "",
		cJSON_IsString(message) ? message->valuestring : "");
	if (error)
		error->code = code;
	cJSON_Delete(root);
	return -code;
}

/* BODY may be NULL. *text: of an answer that is fine; may be NULL. */
static int call(struct api *api, const char *what, const char *path, const char *body,
	char **text, struct error *error)
{
	cleanup_free char *answer = malloc(ANSWER_MAX + 1), *request = NULL;
	cleanup_close int fd = tcp_connect(api->host, api->port, STEP_SECONDS, error);
	SSL *tls = SSL_new(api->context);
	const char *rest;
	int n, status, ret;

	if (fd < 0) {
		SSL_free(tls);
		return error_wrap(error, fd, "the API server");
	}
	/* The keys have a type of their own: the API server says 406 to who takes JSON alone.
	 */
	n = asprintf(&request,
		"%s %s HTTP/1.0\r\nHost: %s\r\nAuthorization: Bearer %s\r\nAccept: "
		"application/json, application/jwk-set+json\r\n"
		"Content-Type: application/merge-patch+json\r\n"
		"Content-Length: %zu\r\n\r\n%s",
		what, path, api->host, api->token, body ? strlen(body) : 0, body ? body : "");
	if (n < 0 || !answer || !tls) {
		SSL_free(tls);
		return error_set(error, ENOMEM, "%s %s", what, path);
	}
	ret = handshake(tls, api, fd, error);
	if (!ret && SSL_write(tls, request, n) != n)
		ret = error_set(error, EPIPE, "%s %s", what, path);
	if (!ret)
		ret = read_all(tls, answer, error);
	OPENSSL_cleanse(request, (size_t)n);
	SSL_free(tls);
	if (ret)
		return ret;
	rest = strstr(answer, "\r\n\r\n");
	if (sscanf(answer, "HTTP/1.%*c %d", &status) != 1 || !rest)
		return error_set(error, EPROTO, "%s %s: no answer in HTTP", what, path);
	if (status != 200)
		return refused(status, what, path, rest + 4, error);
	if (text && !(*text = strdup(rest + 4)))
		return error_set(error, ENOMEM, "%s %s", what, path);
	return 0;
}

int api_get(struct api *api, const char *path, char **text, struct error *error)
{
	return call(api, "GET", path, NULL, text, error);
}

int api_patch_data(struct api *api, const char *path, const char *version, const cJSON *data,
	struct error *error)
{
	cJSON *root = cJSON_CreateObject();
	char *body;
	int ret;

	if (version)
		cJSON_AddStringToObject(
			cJSON_AddObjectToObject(root, "metadata"), "resourceVersion", version);
	cJSON_AddItemToObject(root, "data", cJSON_Duplicate(data, true));
	body = cJSON_PrintUnformatted(root);
	cJSON_Delete(root);
	if (!body)
		return error_set(error, ENOMEM, "PATCH %s", path);
	ret = call(api, "PATCH", path, body, NULL, error);
	OPENSSL_cleanse(body, strlen(body)); /* keys may be in it */
	free(body);
	return ret;
}
