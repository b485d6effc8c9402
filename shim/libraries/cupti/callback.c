/* SPDX-License-Identifier: Apache-2.0
 *
 * Callbacks: a program that wants to be called before and after calls, and when contexts and
 * streams come into being or were waited for.  There is one subscriber, as NVIDIA's has it.
 */
#include <pthread.h>
#include <string.h>

#include "shim/engine/lock.h"
#include "shim/libraries/cupti/cupti.h"

/* Of the domains that have no calls. */
enum { RESOURCE_CONTEXT_CREATED = 1, RESOURCE_STREAM_CREATED = 3, RESOURCES = 24 };
enum { STREAM_SYNCHRONIZED = 1, CONTEXT_SYNCHRONIZED = 2, SYNCHRONIZED = 3 };
enum { STATES = 4, RANGES = 50 /* of NVTX */ };

/* CUpti_CallbackData, CUpti_ResourceData, CUpti_SynchronizeData. */
struct callback_data {
	int32_t site; /* 0: before the call, 1: behind it */
	const char *name;
	const void *params;
	const void *result;
	const char *symbol; /* of a launch: the kernel's */
	CUcontext context;
	uint32_t context_number;
	uint64_t *data; /* the program's, from before the call to behind it */
	uint32_t correlation;
};
struct resource_data {
	CUcontext context;
	CUstream stream;
	void *descriptor;
};
struct synchronize_data {
	CUcontext context;
	CUstream stream;
};

static struct {
	pthread_mutex_t lock;
	_Atomic(CUpti_CallbackFunc) function; /* NULL: nobody subscribed */
	void *user;
	_Atomic uint8_t wanted[CALLBACK_DOMAINS][CUPTI_CALLS];
} subscriber = {.lock = PTHREAD_MUTEX_INITIALIZER};
LOCK_RANK(subscriber, subscriber.lock, LOCK_CUPTI_SUBSCRIBER);

/* A program gets its address as the handle. */
static CUpti_SubscriberHandle handle(void)
{
	return (CUpti_SubscriberHandle)(void *)&subscriber;
}

bool callback_any(void)
{
	return subscriber.function != NULL;
}

bool callback_wanted(uint32_t domain, uint32_t number)
{
	return subscriber.function && domain < CALLBACK_DOMAINS && number < CUPTI_CALLS &&
	       subscriber.wanted[domain][number];
}

static void tell(uint32_t domain, uint32_t number, const void *data)
{
	CUpti_CallbackFunc function = subscriber.function;

	if (function)
		function(subscriber.user, (CUpti_CallbackDomain)domain, number, data);
}

/* --- calls -------------------------------------------------------------------------------- */

void callback_call(bool leaving, struct callback place, struct trace_call *call)
{
	struct callback_data data = {
		.site = leaving,
		.name = callback_name(place.domain, place.number),
		.params = call->params,
		.result = leaving ? call->result : NULL,
		.context = number_current(),
		.data = &call->data,
		.correlation = call->number,
	};
	void *first = NULL;

	if (call->params)
		memcpy(&first, call->params, sizeof(first));
	data.symbol = cupti_kernel_name(call->call, first);
	data.context_number = number_context(data.context);
	tell(place.domain, place.number, &data);
}

/* --- contexts and streams ----------------------------------------------------------------- */

static void stream_created(const struct trace_call *call)
{
	const CUstream *at = NULL;
	struct resource_data data = {.context = number_current()};

	memcpy(&at, call->params, sizeof(at));
	if (!at)
		return;
	data.stream = *at;
	tell(CALLBACK_RESOURCE, RESOURCE_STREAM_CREATED, &data);
}

static void synchronized(const struct trace_call *call, uint32_t number)
{
	struct synchronize_data data = {.context = number_current()};

	if (number == STREAM_SYNCHRONIZED)
		memcpy(&data.stream, call->params, sizeof(data.stream));
	tell(CALLBACK_SYNCHRONIZE, number, &data);
}

/* The contexts that the program was told of, or that were there before it wanted to be told. */
static bool context_is_new(CUcontext context)
{
	static _Atomic(CUcontext) known[64];

	for (unsigned i = 0; context && i < sizeof(known) / sizeof(known[0]); i++) {
		CUcontext none = NULL;

		if (atomic_compare_exchange_strong(&known[i], &none, context))
			return true;
		if (none == context)
			return false;
	}
	return false;
}

static void context_created(void)
{
	struct resource_data data = {.context = number_current()};

	if (context_is_new(data.context))
		tell(CALLBACK_RESOURCE, RESOURCE_CONTEXT_CREATED, &data);
}

/* Those that there are already, as far as they can be found: devices' own, and the thread's. */
static void contexts_known(void)
{
	int devices = 0;

	(void)context_is_new(number_current());
	cupti_own++;
	if (cuDeviceGetCount(&devices))
		devices = 0;
	for (CUdevice device = 0; device < devices; device++) {
		CUcontext context = NULL;
		unsigned flags;
		int active = 0;

		if (cuDevicePrimaryCtxGetState(device, &flags, &active) || !active ||
			cuDevicePrimaryCtxRetain(&context, device))
			continue;
		(void)context_is_new(context);
		(void)cuDevicePrimaryCtxRelease(device);
	}
	cupti_own--;
}

void callback_resources(const struct trace_call *call)
{
	if (!subscriber.function)
		return;
	if (callback_wanted(CALLBACK_RESOURCE, RESOURCE_CONTEXT_CREATED))
		context_created();
	if (!call->result || call_result(call) || !call->params)
		return;
	switch (call->call) {
	case CALL_cuStreamCreate:
	case CALL_cuStreamCreateWithPriority:
	case CALL_cudaStreamCreate:
	case CALL_cudaStreamCreateWithFlags:
	case CALL_cudaStreamCreateWithPriority:
		if (callback_wanted(CALLBACK_RESOURCE, RESOURCE_STREAM_CREATED))
			stream_created(call);
		break;
	case CALL_cuStreamSynchronize:
	case CALL_cuStreamSynchronize_ptsz:
	case CALL_cudaStreamSynchronize:
	case CALL_cudaStreamSynchronize_ptsz:
		if (callback_wanted(CALLBACK_SYNCHRONIZE, STREAM_SYNCHRONIZED))
			synchronized(call, STREAM_SYNCHRONIZED);
		break;
	case CALL_cuCtxSynchronize:
	case CALL_cudaDeviceSynchronize:
		if (callback_wanted(CALLBACK_SYNCHRONIZE, CONTEXT_SYNCHRONIZED))
			synchronized(call, CONTEXT_SYNCHRONIZED);
		break;
	default: break;
	}
}

/* --- what the program wants --------------------------------------------------------------- */

static void callback_none(
	void *user, CUpti_CallbackDomain domain, CUpti_CallbackId number, const void *data)
{
	(void)user, (void)domain, (void)number, (void)data;
}

static CUptiResult subscribe(
	CUpti_SubscriberHandle *to, CUpti_CallbackFunc callback, void *userdata)
{
	CUptiResult result = CUPTI_SUCCESS;

	if (!to)
		return CUPTI_ERROR_INVALID_PARAMETER;
	pthread_mutex_lock(&subscriber.lock);
	if (subscriber.function) {
		result = CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
	} else {
		subscriber.user = userdata;
		subscriber.function = callback ? callback : callback_none;
		*to = handle();
	}
	pthread_mutex_unlock(&subscriber.lock);
	record_watch();
	return result;
}

EXPORT CUptiResult cuptiSubscribe(
	CUpti_SubscriberHandle *subscriber_, CUpti_CallbackFunc callback, void *userdata)
{
	COUNT(cuptiSubscribe);
	return cupti_result(subscribe(subscriber_, callback, userdata));
}

#if VCUDA_ABI == 13
EXPORT CUptiResult cuptiSubscribe_v2(CUpti_SubscriberHandle *subscriber_,
	CUpti_CallbackFunc callback, void *userdata, CUpti_SubscriberParams *pParams)
{
	COUNT(cuptiSubscribe_v2);
	(void)pParams;
	return cupti_result(subscribe(subscriber_, callback, userdata));
}
#endif

void callback_end(void)
{
	pthread_mutex_lock(&subscriber.lock);
	subscriber.function = NULL;
	for (unsigned domain = 0; domain < CALLBACK_DOMAINS; domain++)
		for (unsigned i = 0; i < CUPTI_CALLS; i++)
			subscriber.wanted[domain][i] = 0;
	pthread_mutex_unlock(&subscriber.lock);
}

EXPORT CUptiResult cuptiUnsubscribe(CUpti_SubscriberHandle subscriber_)
{
	COUNT(cuptiUnsubscribe);
	if (subscriber_ != handle())
		return cupti_result(CUPTI_ERROR_INVALID_PARAMETER);
	callback_end();
	record_watch();
	return CUPTI_SUCCESS;
}

/* How many numbers a domain has, 0 included. */
static uint32_t domain_numbers(CUpti_CallbackDomain domain)
{
	switch (domain) {
	case CALLBACK_DRIVER:
	case CALLBACK_RUNTIME: return callback_numbers((unsigned)domain);
	case CALLBACK_RESOURCE: return RESOURCES;
	case CALLBACK_SYNCHRONIZE: return SYNCHRONIZED;
	case CALLBACK_NVTX: return RANGES;
	case CALLBACK_STATE: return STATES;
	default: return 1;
	}
}

static bool is_domain(CUpti_CallbackDomain domain)
{
	return domain >= CALLBACK_DRIVER && domain < CALLBACK_DOMAINS;
}

/* 0, which is none, may be wanted too: Proton does. */
static bool is_callback(CUpti_CallbackDomain domain, CUpti_CallbackId number)
{
	return is_domain(domain) && number < domain_numbers(domain);
}

EXPORT CUptiResult cuptiEnableCallback(uint32_t enable, CUpti_SubscriberHandle subscriber_,
	CUpti_CallbackDomain domain, CUpti_CallbackId cbid)
{
	COUNT(cuptiEnableCallback);
	if (subscriber_ != handle() || !is_callback(domain, cbid))
		return cupti_result(CUPTI_ERROR_INVALID_PARAMETER);
	if (domain == CALLBACK_RESOURCE && enable)
		contexts_known();
	subscriber.wanted[domain][cbid] = (uint8_t)enable;
	return CUPTI_SUCCESS;
}

static void domain_enable(uint32_t enable, CUpti_CallbackDomain domain)
{
	if (domain == CALLBACK_RESOURCE && enable)
		contexts_known();
	for (uint32_t i = 1; i < domain_numbers(domain); i++)
		subscriber.wanted[domain][i] = (uint8_t)enable;
}

EXPORT CUptiResult cuptiEnableDomain(
	uint32_t enable, CUpti_SubscriberHandle subscriber_, CUpti_CallbackDomain domain)
{
	COUNT(cuptiEnableDomain);
	if (subscriber_ != handle() || !is_domain(domain))
		return cupti_result(CUPTI_ERROR_INVALID_PARAMETER);
	domain_enable(enable, domain);
	return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiEnableAllDomains(uint32_t enable, CUpti_SubscriberHandle subscriber_)
{
	COUNT(cuptiEnableAllDomains);
	if (subscriber_ != handle())
		return cupti_result(CUPTI_ERROR_INVALID_PARAMETER);
	for (CUpti_CallbackDomain domain = CALLBACK_DRIVER; domain < CALLBACK_DOMAINS; domain++)
		domain_enable(enable, domain);
	return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiGetCallbackState(uint32_t *enable, CUpti_SubscriberHandle subscriber_,
	CUpti_CallbackDomain domain, CUpti_CallbackId cbid)
{
	COUNT(cuptiGetCallbackState);
	if (!enable || subscriber_ != handle() || !is_callback(domain, cbid))
		return cupti_result(CUPTI_ERROR_INVALID_PARAMETER);
	*enable = subscriber.wanted[domain][cbid];
	return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiGetCallbackName(
	CUpti_CallbackDomain domain, uint32_t cbid, const char **name)
{
	COUNT(cuptiGetCallbackName);
	if (!name)
		return cupti_result(CUPTI_ERROR_INVALID_PARAMETER);
	*name = domain == CALLBACK_DRIVER || domain == CALLBACK_RUNTIME
			? callback_name((unsigned)domain, cbid)
			: NULL;
	return cupti_result(*name ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_PARAMETER);
}

EXPORT CUptiResult cuptiSupportedDomains(size_t *domainCount, CUpti_DomainTable *domainTable)
{
	static CUpti_CallbackDomain domains[] = {CALLBACK_DRIVER, CALLBACK_RUNTIME,
		CALLBACK_RESOURCE, CALLBACK_SYNCHRONIZE, CALLBACK_NVTX, CALLBACK_STATE};

	COUNT(cuptiSupportedDomains);
	if (!domainCount || !domainTable)
		return cupti_result(CUPTI_ERROR_INVALID_PARAMETER);
	*domainCount = sizeof(domains) / sizeof(domains[0]);
	*domainTable = domains;
	return CUPTI_SUCCESS;
}
