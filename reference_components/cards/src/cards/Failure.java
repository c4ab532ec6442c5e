package cards;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** An error that crosses the border: protocol section 5, one table. Nothing was done when one is thrown. */
final class Failure extends Exception {
    enum Reason {
        INVALID_REQUEST("INVALID_ARGUMENT", 400),
        VERSION_UNSUPPORTED("FAILED_PRECONDITION", 400),
        CARD_CANCELLED("FAILED_PRECONDITION", 400),
        NOT_FOUND("NOT_FOUND", 404),
        UNKNOWN_CARD("NOT_FOUND", 404),
        METHOD_NOT_ALLOWED("UNIMPLEMENTED", 405),
        STALE_ATTEMPT("ABORTED", 409),
        IDEMPOTENCY_CONFLICT("ALREADY_EXISTS", 409),
        PAYLOAD_TOO_LARGE("RESOURCE_EXHAUSTED", 413),
        INTERNAL("INTERNAL", 500),
        TIMEOUT("DEADLINE_EXCEEDED", 504);

        final String code;
        final int http;

        Reason(String code, int http) {
            this.code = code;
            this.http = http;
        }
    }

    private static final long serialVersionUID = 1;

    final Reason reason;
    private final String sideEffect;

    Failure(Reason reason, String message) {
        this(reason, message, "NONE");
    }

    Failure(Reason reason, String message, String sideEffect) {
        super(message);
        this.reason = reason;
        this.sideEffect = sideEffect;
    }

    static Failure invalid(String message) {
        return new Failure(Reason.INVALID_REQUEST, message);
    }

    Map<String, Object> body() {
        Map<String, Object> error = new LinkedHashMap<>();
        error.put("code", reason.code);
        error.put("reason", reason.name());
        error.put("message", getMessage());
        error.put("retryable", reason == Reason.TIMEOUT);
        error.put("side_effect", sideEffect);
        error.put("boundary", reason.http < 500 ? "CLIENT" : "COMPONENT");
        if (reason == Reason.VERSION_UNSUPPORTED) {
            error.put("details", Map.of("supported", List.of("1.0")));
        }
        return Map.of("error", error);
    }
}
