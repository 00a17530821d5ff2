/*-------------------------------------------------------------------------
 *
 * endpoint.h
 *	  Finds the AWS region and the endpoints of DynamoDB and of the services that
 *	  give credentials, where credentials.h looks for credentials.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_AWS_ENDPOINT_H
#define DDBLOCK_AWS_ENDPOINT_H

#include "aws/credentials.h"

/*
 * Region: setting, AWS_REGION, AWS_DEFAULT_REGION, the profile's "region".  False
 * and "" if there is none, if it cannot be part of a host name, or if the files
 * are unusable; error then says why, and what was tried.
 */
extern bool aws_find_region(const aws_settings *settings,
							const aws_environment *env,
							char *region, size_t size,
							char *error, size_t error_size);

/*
 * Endpoint: setting, AWS_ENDPOINT_URL_DYNAMODB, AWS_ENDPOINT_URL, the
 * profile's services section, its endpoint_url; else "" is written, and the
 * caller uses https://dynamodb.REGION.amazonaws.com (amazonaws.com.cn for
 * cn-*): aws_default_endpoint().  AWS_IGNORE_CONFIGURED_ENDPOINT_URLS and
 * ignore_configured_endpoint_urls apply to all but the setting.  A slash at the
 * end is removed.  False and "" if the URL is invalid or too long, or if the
 * files are unusable; error then says why.
 */
extern bool aws_find_endpoint(const aws_settings *settings,
							  const aws_environment *env,
							  char *url, size_t size,
							  char *error, size_t error_size);
extern void aws_default_endpoint(const char *region, char *url, size_t size);

typedef enum aws_service
{
	AWS_STS,
	AWS_SSO,
	AWS_SSO_OIDC
} aws_service;

/*
 * The endpoint of a service that gives credentials, in the same way: its own
 * AWS_ENDPOINT_URL_..., AWS_ENDPOINT_URL, services section, endpoint_url; else
 * Amazon's for the Region, with FIPS and dual stack if the environment or the
 * profile asks for them.  False, with an error, if that is not a URL.
 */
extern bool aws_find_service_endpoint(const aws_settings *settings,
									  const aws_environment *env,
									  aws_service service, const char *region,
									  char *url, size_t size,
									  char *error, size_t error_size);

/*
 * The only definition of an endpoint's URL: scheme://host[:port][/], where the
 * scheme is http or https.  Writes the Host header's value ("host" or
 * "host:port", without the scheme's default port).  False, with an error text,
 * if the URL has another form.
 */
extern bool aws_endpoint_host(const char *url, char *host, size_t size,
							  char *error, size_t error_size);

/* Removes a slash at the end. */
extern void aws_drop_slash(char *url);

/* Is the URL one of Amazon's own hosts, by https, on the port of that? */
extern bool aws_is_own_endpoint(const char *url);

#endif							/* DDBLOCK_AWS_ENDPOINT_H */
