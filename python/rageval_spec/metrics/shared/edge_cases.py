"""Edge cases that several metrics treat alike, in the words of `rageval-spec metrics show`."""

EMPTY_IS_ZERO = "empty answer: 0"
NO_REFERENCE = "no reference: unscorable"
FIRST_REFERENCE = "only the first one counts"
FAILED_SYSTEM = "the system failed and gave no answer: status error, no value; `error_rate` counts these"
FAILED_JUDGE = "the judge failed, or its reply could not be read: status error with the reason and the reply, no value"
