/*-------------------------------------------------------------------------
 *
 * endpoint.h
 *	  Finds the AWS region and DynamoDB's endpoint, where credentials.h looks
 *	  for credentials.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_AWS_ENDPOINT_H
#define DDBLOCK_AWS_ENDPOINT_H

#include "aws/credentials.h"

/*
 * Region: setting, AWS_REGION, AWS_DEFAULT_REGION, profile's "region".  False
 * and "" if there is none, or none that can be part of a host name, or the
 * files are unusable; error then says which, and what was tried in order.
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
 * ignore_configured_endpoint_urls are honoured for all but the setting.  A
 * slash at its end is dropped.  False and "" if the URL does not fit or is
 * none, or the files are unusable; error then says which.
 */
extern bool aws_find_endpoint(const aws_settings *settings,
							  const aws_environment *env,
							  char *url, size_t size,
							  char *error, size_t error_size);
extern void aws_default_endpoint(const char *region, char *url, size_t size);

#endif							/* DDBLOCK_AWS_ENDPOINT_H */
