package cards;

import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.CodingErrorAction;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Strict JSON: text to Map, List, String, Num, Boolean, null and back. A number keeps its characters,
 * so that 0.10 and 9007199254740993 leave as they came. Refuses duplicate keys, lone surrogates,
 * text that is not UTF-8, and nesting deeper than 48.
 */
final class Json {
    /** A number as it was written. */
    record Num(String text) {}

    static final class BadJson extends Exception {
        private static final long serialVersionUID = 1;

        BadJson(String message) {
            super(message);
        }
    }

    private static final int MAX_DEPTH = 48;
    private static final char END = '\uffff'; // not a character of any text

    private final String text;
    private int at = 0;

    private Json(String text) {
        this.text = text;
    }

    static Object parse(byte[] utf8) throws BadJson {
        String text;
        try {
            text = StandardCharsets.UTF_8.newDecoder()
                    .onMalformedInput(CodingErrorAction.REPORT)
                    .decode(ByteBuffer.wrap(utf8)).toString();
        } catch (CharacterCodingException notUtf8) {
            throw new BadJson("not UTF-8");
        }
        Json reader = new Json(text);
        Object value = reader.value(0);
        reader.skipSpace();
        if (reader.at != text.length()) {
            throw reader.bad("something follows the value");
        }
        return value;
    }

    private BadJson bad(String what) {
        return new BadJson(what + " at character " + at);
    }

    private char peek() {
        return at < text.length() ? text.charAt(at) : END;
    }

    private void skipSpace() {
        while (" \t\n\r".indexOf(peek()) >= 0) {
            at++;
        }
    }

    private void expect(char c) throws BadJson {
        if (peek() != c) {
            throw bad("expected '" + c + "'");
        }
        at++;
    }

    private Object value(int depth) throws BadJson {
        skipSpace();
        if (depth >= MAX_DEPTH && (peek() == '{' || peek() == '[')) {
            throw bad("nested deeper than " + MAX_DEPTH);
        }
        return switch (peek()) {
            case '{' -> object(depth);
            case '[' -> array(depth);
            case '"' -> string();
            case 't' -> word("true", Boolean.TRUE);
            case 'f' -> word("false", Boolean.FALSE);
            case 'n' -> word("null", null);
            default -> number();
        };
    }

    private Object word(String word, Object value) throws BadJson {
        if (!text.startsWith(word, at)) {
            throw bad("unknown word");
        }
        at += word.length();
        return value;
    }

    private Map<String, Object> object(int depth) throws BadJson {
        Map<String, Object> members = new LinkedHashMap<>();
        at++;
        skipSpace();
        if (peek() == '}') {
            at++;
            return members;
        }
        while (true) {
            skipSpace();
            String key = string();
            skipSpace();
            expect(':');
            Object member = value(depth + 1);
            if (members.containsKey(key)) {
                throw bad("duplicate key \"" + key + "\"");
            }
            members.put(key, member);
            skipSpace();
            if (peek() != ',') {
                expect('}');
                return members;
            }
            at++;
        }
    }

    private List<Object> array(int depth) throws BadJson {
        List<Object> items = new ArrayList<>();
        at++;
        skipSpace();
        if (peek() == ']') {
            at++;
            return items;
        }
        while (true) {
            items.add(value(depth + 1));
            skipSpace();
            if (peek() != ',') {
                expect(']');
                return items;
            }
            at++;
        }
    }

    private Num number() throws BadJson {
        int start = at;
        if (peek() == '-') {
            at++;
        }
        if (peek() == '0') {
            at++;
        } else {
            digits();
        }
        if (peek() == '.') {
            at++;
            digits();
        }
        if (peek() == 'e' || peek() == 'E') {
            at++;
            if (peek() == '+' || peek() == '-') {
                at++;
            }
            digits();
        }
        return new Num(text.substring(start, at));
    }

    private void digits() throws BadJson {
        int start = at;
        while (peek() >= '0' && peek() <= '9') {
            at++;
        }
        if (at == start) {
            throw bad("expected a digit");
        }
    }

    private String string() throws BadJson {
        expect('"');
        StringBuilder out = new StringBuilder();
        while (peek() != '"' || at >= text.length()) {
            char c = peek();
            if (at >= text.length() || c < ' ') {
                throw bad("unfinished string or control character");
            }
            at++;
            out.append(c == '\\' ? escape() : c);
        }
        at++;
        checkSurrogates(out);
        return out.toString();
    }

    private char escape() throws BadJson {
        char c = peek();
        at++;
        if (c == 'u') {
            if (at + 4 > text.length() || !text.substring(at, at + 4).matches("[0-9a-fA-F]{4}")) {
                throw bad("bad \\u escape");
            }
            at += 4;
            return (char) Integer.parseInt(text.substring(at - 4, at), 16);
        }
        int which = "\"\\/bfnrt".indexOf(c);
        if (which < 0) {
            throw bad("unknown escape");
        }
        return "\"\\/\b\f\n\r\t".charAt(which);
    }

    private void checkSurrogates(CharSequence s) throws BadJson {
        for (int i = 0; i < s.length(); i++) {
            char c = s.charAt(i);
            boolean pair = Character.isHighSurrogate(c) && i + 1 < s.length()
                    && Character.isLowSurrogate(s.charAt(i + 1));
            if (Character.isSurrogate(c) && !pair) {
                throw bad("lone surrogate");
            }
            if (pair) {
                i++;
            }
        }
    }

    static String write(Object value) {
        StringBuilder out = new StringBuilder();
        write(value, out);
        return out.toString();
    }

    private static void write(Object value, StringBuilder out) {
        if (value instanceof Map<?, ?> members) {
            String gap = "{";
            for (Map.Entry<?, ?> member : members.entrySet()) {
                out.append(gap);
                quote((String) member.getKey(), out);
                out.append(':');
                write(member.getValue(), out);
                gap = ",";
            }
            out.append(members.isEmpty() ? "{}" : "}");
        } else if (value instanceof List<?> items) {
            String gap = "[";
            for (Object item : items) {
                out.append(gap);
                write(item, out);
                gap = ",";
            }
            out.append(items.isEmpty() ? "[]" : "]");
        } else if (value instanceof String string) {
            quote(string, out);
        } else if (value instanceof Num number) {
            out.append(number.text());
        } else {
            out.append(value); // null, Boolean, Integer, Long
        }
    }

    private static void quote(String string, StringBuilder out) {
        out.append('"');
        for (int i = 0; i < string.length(); i++) {
            char c = string.charAt(i);
            if (c == '"' || c == '\\') {
                out.append('\\').append(c);
            } else if (c < ' ') {
                out.append(String.format("\\u%04x", (int) c));
            } else {
                out.append(c);
            }
        }
        out.append('"');
    }
}
