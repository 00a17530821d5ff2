/*-------------------------------------------------------------------------
 *
 * partition.c
 *	  Amazon's own endpoints, from a table of AWS's partitions.
 *
 * A partition is a group of Regions with domain names of its own, such as those of China.  The
 * table follows botocore's partitions.json, which all AWS SDKs have: there each partition has FIPS
 * and dual-stack endpoints.  `make aws-endpoints` runs the SDKs' own tests on it.
 *
 *-------------------------------------------------------------------------
 */
#include "aws/aws.h"

#include <strings.h>

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
#define LABEL_MAX 63			/* the longest part of a DNS name between two dots */

typedef struct partition
{
	const char *prefix;			/* a Region is this, then a word, "-" and a number: cn-north-1 */
	const char *suffix;
	const char *dual_stack_suffix;
	bool		fips_everywhere;	/* an IPv4 endpoint supports FIPS under its usual name */
} partition;

/* The first partition has every Region that no other one has, also a Region that is new. */
static const partition partitions[] = {
	{"", "amazonaws.com", "api.aws", false},
	{"cn-", "amazonaws.com.cn", "api.amazonwebservices.com.cn", false},
	{"us-gov-", "amazonaws.com", "api.aws", true},
	{"us-iso-", "c2s.ic.gov", "api.aws.ic.gov", false},
	{"us-isob-", "sc2s.sgov.gov", "api.aws.scloud", false},
	{"eu-isoe-", "cloud.adc-e.uk", "api.cloud-aws.adc-e.uk", false},
	{"us-isof-", "csp.hci.ic.gov", "api.aws.hci.ic.gov", false},
	{"eusc-de-", "amazonaws.eu", "api.amazonwebservices.eu", false},
};

static bool
has_region(const partition *of, const char *region)
{
	size_t		len = strlen(of->prefix);
	int			end = 0;

	if (strncmp(region, of->prefix, len) != 0)
		return false;
	sscanf(region + len, "%*[A-Za-z0-9_]-%*[0-9]%n", &end);
	return end > 0 && region[len + end] == '\0';
}

static bool
ends_in(const char *text, const char *end)
{
	size_t		len = strlen(text);
	size_t		end_len = strlen(end);

	return len > end_len && strcasecmp(text + len - end_len, end) == 0;
}

const char *
aws_wrong_region(const char *text)
{
	size_t		len = strspn(text, AWS_LETTERS_DIGITS "-");

	if (len == 0 || len > LABEL_MAX || text[len] != '\0' || text[0] == '-' ||
		text[len - 1] == '-' || ends_in(text, "-global"))
		return "not the name of a Region";
	if (strncasecmp(text, "fips-", 5) == 0 || ends_in(text, "-fips"))
		return "not the name of a Region: set AWS_USE_FIPS_ENDPOINT to \"true\" for FIPS";
	if (strchr("0123456789", text[len - 1]) != NULL && strpbrk(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != NULL)
		return "not the name of a Region: those of AWS have no capital letters";
	return NULL;
}

bool
aws_own_endpoint(const char *name, const char *region, bool fips, bool dual_stack,
				 char *url, size_t size)
{
	const partition *in = &partitions[COUNT_OF(partitions) - 1];
	bool		says_fips;
	int			len;

	while (in > partitions && !has_region(in, region))
		in--;
	says_fips = fips && (dual_stack || !in->fips_everywhere);
	len = snprintf(url, size, "https://%s%s.%s.%s", name, says_fips ? "-fips" : "",
				   region, dual_stack ? in->dual_stack_suffix : in->suffix);
	return len >= 0 && (size_t) len < size;
}

static bool
is_below(const char *host, const char *domain)
{
	return ends_in(host, domain) && host[strlen(host) - strlen(domain) - 1] == '.';
}

bool
aws_is_own_endpoint(const char *url)
{
	char		host[300];
	char		error[64];

	if (strncasecmp(url, "https://", 8) != 0 ||
		!aws_endpoint_host(url, host, sizeof(host), error, sizeof(error)))
		return false;
	for (size_t i = 0; i < COUNT_OF(partitions); i++)
		if (is_below(host, partitions[i].suffix) ||
			is_below(host, partitions[i].dual_stack_suffix))
			return true;
	return false;
}
