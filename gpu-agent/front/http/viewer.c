/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu-agent/front/http/viewer.h"

#include <string.h>
#include <strings.h>

#include "gpu-agent/front/front.h"
#include "gpu-agent/front/ledger/quota.h"
#include "gpu-agent/front/session/session.h"
#include "gpu-agent/front/tenants.h"
#include "gpu-agent/supervisor/settings/token.h"

static const char scheme[] = "Bearer ";

/* What stands behind "Bearer", as long as a token may be; false: there is no such thing. */
static bool bearer(const char *authorization, char token[AGENT_TOKEN_MAX + 1])
{
	const char *at = authorization + sizeof(scheme) - 1;
	size_t n;

	memset(token, 0, AGENT_TOKEN_MAX + 1);
	if (strncasecmp(authorization, scheme, sizeof(scheme) - 1))
		return false;
	at += strspn(at, " ");
	n = strcspn(at, " \t");
	if (!n || n > AGENT_TOKEN_MAX || at[n])
		return false;
	memcpy(token, at, n);
	return true;
}

bool viewer_of(const struct front *front, const char *authorization, struct viewer *viewer)
{
	char token[AGENT_TOKEN_MAX + 1];
	bool good;

	*viewer = (struct viewer){.all = !front->http_tokens.count && !tenants_several(front)};
	/* Where nobody is asked a token means nothing. */
	if (viewer->all || !authorization)
		return true;
	good = bearer(authorization, token);
	if (good) {
		viewer->all = token_find(&front->http_tokens, token) >= 0;
		if (!viewer->all)
			viewer->tenant = tenants_of_token(front, token);
	}
	explicit_bzero(token, sizeof(token));
	viewer->named = viewer->all || viewer->tenant;
	return viewer->named;
}

bool viewer_sees(const struct viewer *viewer, const struct tenant *tenant)
{
	return viewer->all || (tenant && viewer->tenant == tenant);
}

bool viewer_sees_gpu(const struct front *front, const struct viewer *viewer, uint32_t device)
{
	return viewer->all || !viewer->tenant ||
	       (quota_gpus(front, viewer->tenant) >> device & 1);
}

bool viewer_sees_session(const struct viewer *viewer, const struct session *session)
{
	return session->state != SESSION_FREE && viewer_sees(viewer, session->tenant);
}
