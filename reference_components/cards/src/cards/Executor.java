package cards;

import java.io.IOException;
import java.util.LinkedHashMap;
import java.util.Map;

/** Runs Execute: reads at once, writes one at a time and once per call (BY_KEY, protocol section 4). */
final class Executor {
    private static final String CARD_FORM = "card-[0-9]{4}";
    private static final int REMEMBERED_CALLS = 100_000;

    private final Vault vault;
    /** By call id, the highest attempt seen; the oldest are forgotten. Guarded by the vault. */
    private final Map<String, Integer> attempts = new LinkedHashMap<>() {
        @Override
        protected boolean removeEldestEntry(Map.Entry<String, Integer> eldest) {
            return size() > REMEMBERED_CALLS;
        }
    };

    Executor(Vault vault) {
        this.vault = vault;
    }

    Map<String, Object> execute(Request request) throws Failure {
        Actions.Read read = Actions.READS.get(request.action());
        Actions.Write write = Actions.WRITES.get(request.action());
        if (read == null && write == null) {
            throw new Failure(Failure.Reason.NOT_FOUND, "there is no action " + request.action());
        }
        synchronized (vault) { // a repeat waits here for the first
            if (request.isLate()) {
                throw new Failure(Failure.Reason.TIMEOUT, "the deadline passed before it was this call's turn");
            }
            if (read != null) {
                attempts.putIfAbsent(request.callId(), request.attempt());
                return reply(read.answer(vault.card(request.argument("card", CARD_FORM))), "NONE");
            }
            Vault.Outcome outcome = once(request, write);
            return reply(outcome.output(), outcome.sideEffect());
        }
    }

    /** Answers Cancel: nothing runs long enough to be stopped, so it tells what happened. */
    Map<String, Object> cancel(String callId) {
        synchronized (vault) {
            Vault.Outcome outcome = vault.outcome(callId, System.currentTimeMillis());
            if (outcome != null) {
                return Map.of("state", "FINISHED", "side_effect", outcome.sideEffect());
            }
            boolean seen = attempts.containsKey(callId);
            return seen ? Map.of("state", "FINISHED", "side_effect", "NONE") : Map.of("state", "UNKNOWN_CALL");
        }
    }

    private Vault.Outcome once(Request request, Actions.Write write) throws Failure {
        if (request.attempt() < attempts.getOrDefault(request.callId(), 0)) {
            throw new Failure(Failure.Reason.STALE_ATTEMPT, "a later attempt of this call was seen");
        }
        attempts.put(request.callId(), request.attempt());
        long nowMs = System.currentTimeMillis();
        Vault.Outcome known = vault.outcome(request.callId(), nowMs);
        if (known != null && !known.digest().equals(request.bodyDigest())) {
            throw new Failure(Failure.Reason.IDEMPOTENCY_CONFLICT, "this call_id did something else before");
        }
        if (known != null) {
            return known;
        }
        Map<String, Object> card = vault.card(request.argument("card", CARD_FORM));
        try {
            return vault.commit(request.callId(), request.bodyDigest(), write.decide(card, request, vault), nowMs);
        } catch (IOException problem) {
            throw new Failure(Failure.Reason.INTERNAL, "the journal cannot be written: " + problem, "UNKNOWN");
        }
    }

    private static Map<String, Object> reply(Map<String, Object> output, String sideEffect) {
        Map<String, Object> reply = new LinkedHashMap<>();
        reply.put("output", output);
        reply.put("side_effect", sideEffect);
        return reply;
    }
}
