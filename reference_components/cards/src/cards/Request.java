package cards;

import java.util.Map;

/** An Execute request, checked: every field is there and of its type. Unknown fields are ignored. */
record Request(String callId, int attempt, String bodyDigest, long deadlineNanos, String action,
        Map<String, Object> arguments) {

    private static final long MAX_TIMEOUT_MS = 24L * 60 * 60 * 1000;

    static Request read(Object body, String idempotencyKey) throws Failure {
        Map<String, Object> request = object(body, "the body");
        Map<String, Object> context = object(request.get("context"), "context");
        String callId = string(context, "call_id", "context.");
        String digest = string(context, "body_digest", "context.");
        string(context, "session_id", "context.");
        string(context, "lineage_id", "context.");
        long attempt = integer(context, "attempt");
        long timeoutMs = Math.min(integer(context, "timeout_ms"), MAX_TIMEOUT_MS);
        if (attempt < 1 || attempt > Integer.MAX_VALUE || timeoutMs < 1 || !digest.matches("[0-9a-f]{64}")) {
            throw Failure.invalid("context: attempt and timeout_ms are at least 1, body_digest is 64 hex digits");
        }
        if (idempotencyKey != null && !idempotencyKey.equals(callId)) {
            throw Failure.invalid("the header idempotency-key differs from context.call_id");
        }
        long deadline = System.nanoTime() + timeoutMs * 1_000_000;
        Map<String, Object> arguments = object(request.get("arguments"), "arguments");
        return new Request(callId, (int) attempt, digest, deadline, string(request, "action", ""), arguments);
    }

    /** A string argument; `form` is the pattern of the card's input_schema. */
    String argument(String name, String form) throws Failure {
        String value = string(arguments, name, "arguments.");
        if (!value.matches(form)) {
            throw Failure.invalid("arguments." + name + " does not match " + form);
        }
        return value;
    }

    boolean isLate() {
        return System.nanoTime() - deadlineNanos > 0;
    }

    @SuppressWarnings("unchecked") // the reader makes no other maps
    private static Map<String, Object> object(Object value, String what) throws Failure {
        if (value instanceof Map<?, ?> map) {
            return (Map<String, Object>) map;
        }
        throw Failure.invalid(what + " is not an object");
    }

    private static String string(Map<String, Object> map, String name, String where) throws Failure {
        if (map.get(name) instanceof String value && !value.isEmpty()) {
            return value;
        }
        throw Failure.invalid(where + name + " is missing, empty or not a string");
    }

    private static long integer(Map<String, Object> map, String name) throws Failure {
        if (map.get(name) instanceof Json.Num number && number.text().matches("-?[0-9]{1,15}")) {
            return Long.parseLong(number.text());
        }
        throw Failure.invalid("context." + name + " is missing or not an integer");
    }
}
