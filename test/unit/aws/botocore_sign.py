"""Signs requests with botocore, as an independent check of sigv4.c.

Standard input: one JSON object a line, with the keys method, url, headers (a
list of [name, value]), body, region, service, access_key_id,
secret_access_key, token (or null) and amz_date.  Standard output: for each the
value of its Authorization header.  botocore adds x-amz-date and, for a token,
x-amz-security-token by itself.
"""
import json
import sys

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials


def authorization(case):
    request = AWSRequest(method=case["method"], url=case["url"],
                         data=case["body"].encode("utf-8"))
    for name, value in case["headers"]:
        request.headers[name] = value   # appends: a name may occur twice
    request.context["timestamp"] = case["amz_date"]

    signer = SigV4Auth(
        Credentials(case["access_key_id"], case["secret_access_key"],
                    case["token"]),
        case["service"], case["region"])
    # What add_auth() does, but with the time that we give.
    signer._modify_request_before_signing(request)
    canonical = signer.canonical_request(request)
    to_sign = signer.string_to_sign(request, canonical)
    signature = signer.signature(to_sign, request)
    signer._inject_signature_to_request(request, signature)
    return request.headers["Authorization"]


for line in sys.stdin.buffer:
    print(authorization(json.loads(line)))
