"""Explain boto3's errors in one line, and classify them as retryable or not."""

from __future__ import annotations

from typing import Any

from balog.common.errors import TopicError, TopicNotFoundError
from balog.common.text import cut, one_line

_MAX_REASON = 300

BAD_CREDENTIALS = frozenset(
    {
        "AuthFailure",
        "IncompleteSignature",
        "InvalidAccessKeyId",
        "InvalidClientTokenId",
        "InvalidSecurity",
        "InvalidSignatureException",
        "MissingAuthenticationToken",
        "SignatureDoesNotMatch",
        "UnrecognizedClientException",
    }
)

_DENIED = frozenset({"AccessDenied", "AccessDeniedException", "KmsAccessDenied"})

_PASSING = frozenset(
    {
        "KmsThrottled",
        "OverLimit",  # too many messages in flight
        "QueueDeletedRecently",
        "QueueDoesNotExist",
        "RequestThrottled",
        "RequestTimeTooSkewed",
        "RequestTimeout",
        "SlowDown",
        "Throttling",
        "ThrottlingException",
        "TooManyRequestsException",
    }
)
"""Errors that may pass, although their status is 4xx."""


class AwsError(TopicError):
    """AWS rejected a request, or could not be reached.

    Attributes:
        code: AWS's own name of the error, ``QueueDoesNotExist``, without the prefixes of older protocols; empty when
            no answer came.
        status: the answer's HTTP status, 0 when no answer came.
    """

    def __init__(self, reason: str, code: str = "", status: int = 0, *, retryable: bool = True) -> None:
        super().__init__(reason, retryable=retryable)
        self.code = code
        self.status = status
        if code == "QueueDoesNotExist":
            self.exit_code = TopicNotFoundError.exit_code


def short_code(code: str) -> str:
    """Return the short name of an AWS error: ``QueueDoesNotExist`` also for the older, longer names."""
    name = code.rpartition("#")[2].rpartition(".")[2].partition(":")[0]
    return {"NonExistentQueue": "QueueDoesNotExist", "QueueAlreadyExists": "QueueNameExists"}.get(name, name)


def explain(error: Exception, where: str, region: str, endpoint: str | None) -> AwsError | None:
    """Return the error to raise for an error of boto3; None for other errors.

    Args:
        where: the name of the topic, ``topic orders (sqs:eu-central-1)``.
        region: of the client, like ``endpoint``.
    """
    from botocore import exceptions

    if isinstance(error, exceptions.ClientError):
        return _explain_answer(error.response, where)
    if isinstance(error, (exceptions.NoCredentialsError, exceptions.PartialCredentialsError)):
        return AwsError(
            f"{where}: no AWS credentials; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, a profile, or a role",
            retryable=False,
        )
    if isinstance(error, (exceptions.ProxyConnectionError, exceptions.SSLError)):  # more is in their text, URLs too
        return AwsError(f"{where}: can't be reached: {type(error).__name__}; check proxy and certificates")
    if isinstance(error, (exceptions.HTTPClientError, exceptions.ConnectionError, exceptions.IncompleteReadError)):
        at = endpoint or f"AWS in {region}"
        return AwsError(f"{where}: {at} can't be reached: {type(error).__name__}")
    if isinstance(error, (exceptions.CredentialRetrievalError, exceptions.MetadataRetrievalError)):
        return AwsError(f"{where}: AWS credentials could not be had: {_line(error)}")
    if isinstance(error, exceptions.BotoCoreError):  # parameters, profiles, files of the configuration
        return AwsError(f"{where}: {_line(error)}", retryable=False)
    if isinstance(error, ValueError) and "endpoint" in str(error):  # "Invalid endpoint: …"
        return AwsError(f"{where}: the endpoint is not a URL that can be called", retryable=False)
    return None


def _explain_answer(response: dict[str, Any], where: str) -> AwsError:
    code = short_code(str(response.get("Error", {}).get("Code", "")))
    status = int(response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
    text = _line(response.get("Error", {}).get("Message", ""))
    if code in BAD_CREDENTIALS:  # the text of some shows what was signed
        reason = f"AWS takes the credentials for wrong ({code}); check key, secret and session token"
    elif code in ("ExpiredToken", "ExpiredTokenException"):
        reason = "the AWS session token has expired; get new credentials"
    elif code in _DENIED:
        reason = f"access denied; allow it in the IAM policy: {text}"
    elif code == "QueueDoesNotExist":
        reason = "no such queue; it is made when something is first published to it, unless the URL has create=no"
    else:
        reason = f"{code or status}: {text}"
    retryable = code in _PASSING or status >= 500 or status in (408, 429)
    return AwsError(f"{where}: {reason}", code, status, retryable=retryable)


def _line(text: object) -> str:
    return cut(one_line(str(text)), _MAX_REASON)
