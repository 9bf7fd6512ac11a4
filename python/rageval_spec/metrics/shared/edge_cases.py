"""Edge cases that several metrics treat alike, as `rageval-spec metrics show` words them."""

EMPTY_IS_ZERO = "empty answer: 0"
NO_REFERENCE = "no reference: unscorable"
FIRST_REFERENCE = "the first one is compared with"
FAILED_SYSTEM = "the system failed and gave no answer: status error, no value; `error_rate` counts these"
FAILED_JUDGE = "the judge failed, or its reply could not be read: status error with the reason and the reply, no value"
