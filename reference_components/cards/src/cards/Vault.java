package cards;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * The cards, and what was done to them. A write is one line of the journal, holding the cards as they
 * are afterwards and the answer that was given, on the disk before anybody sees either: a crash leaves
 * a write done with its outcome known, or not done. An incomplete last line is cut off at start.
 */
final class Vault implements AutoCloseable {
    /** What a write did, kept for repeats. */
    record Outcome(String digest, long untilMs, Map<String, Object> output, String sideEffect) {}

    /** What a write wants: cards to store, and the answer. No cards = nothing is changed. */
    record Change(List<Map<String, Object>> cards, Map<String, Object> output) {}

    private final Map<String, Map<String, Object>> cards = new LinkedHashMap<>();
    private final Map<String, Outcome> outcomes = new LinkedHashMap<>(); // oldest first
    private final FileChannel journal;
    private final long ttlMs;

    Vault(Path opening, Path journalFile, long ttlMs) throws IOException, Json.BadJson {
        this.ttlMs = ttlMs;
        journal = FileChannel.open(journalFile, StandardOpenOption.CREATE, StandardOpenOption.READ,
                StandardOpenOption.WRITE);
        if (journal.tryLock() == null) {
            throw new IOException("another process uses " + journalFile);
        }
        for (Object card : (List<?>) Json.parse(Files.readAllBytes(opening))) {
            store(member(card));
        }
        long whole = replay(readJournal());
        journal.truncate(whole);
        journal.position(whole);
    }

    /** The card of that id. Hold the vault's lock while using it. */
    Map<String, Object> card(String id) throws Failure {
        Map<String, Object> card = cards.get(id);
        if (card == null) {
            throw new Failure(Failure.Reason.UNKNOWN_CARD, "there is no card " + id);
        }
        return card;
    }

    int count() {
        return cards.size();
    }

    /** What the call did, or null; expired outcomes are forgotten here. */
    Outcome outcome(String callId, long nowMs) {
        var oldest = outcomes.entrySet().iterator();
        while (oldest.hasNext() && oldest.next().getValue().untilMs() < nowMs) {
            oldest.remove();
        }
        return outcomes.get(callId);
    }

    /** Store the change and its outcome together. */
    Outcome commit(String callId, String digest, Change change, long nowMs) throws IOException {
        String sideEffect = change.cards().isEmpty() ? "NONE" : "PERFORMED";
        Map<String, Object> line = new LinkedHashMap<>();
        line.put("call_id", callId);
        line.put("body_digest", digest);
        line.put("until_ms", new Json.Num(Long.toString(nowMs + ttlMs)));
        line.put("cards", change.cards());
        line.put("output", change.output());
        line.put("side_effect", sideEffect);
        ByteBuffer bytes = ByteBuffer.wrap((Json.write(line) + "\n").getBytes(StandardCharsets.UTF_8));
        long before = journal.position();
        try {
            while (bytes.hasRemaining()) {
                journal.write(bytes);
            }
            journal.force(false);
        } catch (IOException problem) {
            journal.truncate(before);
            throw problem;
        }
        return apply(line);
    }

    @Override
    public void close() throws IOException {
        journal.close();
    }

    /** Through the locked channel: closing a second one on the file would give up the lock (POSIX). */
    private byte[] readJournal() throws IOException {
        ByteBuffer bytes = ByteBuffer.allocate((int) journal.size());
        while (bytes.hasRemaining() && journal.read(bytes) >= 0) {
            continue;
        }
        return bytes.array();
    }

    /** Takes in every whole line; returns where the last one ends. */
    private long replay(byte[] bytes) throws Json.BadJson {
        int start = 0;
        for (int i = 0; i < bytes.length; i++) {
            if (bytes[i] == '\n') {
                apply(member(Json.parse(Arrays.copyOfRange(bytes, start, i))));
                start = i + 1;
            }
        }
        return start;
    }

    private Outcome apply(Map<String, Object> line) {
        for (Object card : (List<?>) line.get("cards")) {
            store(member(card));
        }
        Outcome outcome = new Outcome((String) line.get("body_digest"),
                Long.parseLong(((Json.Num) line.get("until_ms")).text()),
                member(line.get("output")), (String) line.get("side_effect"));
        outcomes.remove((String) line.get("call_id")); // keeps the order: oldest first
        outcomes.put((String) line.get("call_id"), outcome);
        return outcome;
    }

    private void store(Map<String, Object> card) {
        cards.put((String) card.get("card"), card);
    }

    @SuppressWarnings("unchecked") // what we wrote ourselves
    private static Map<String, Object> member(Object value) {
        return (Map<String, Object>) value;
    }

    /** A copy of the card with one member changed. */
    static Map<String, Object> with(Map<String, Object> card, String name, Object value) {
        Map<String, Object> copy = new LinkedHashMap<>(card);
        copy.put(name, value);
        return copy;
    }
}
