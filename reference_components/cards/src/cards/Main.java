package cards;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** ACP v1 over HTTP+JSON for the cards: routes, limits, errors. Listens on loopback only. */
public final class Main {
    private static final int MAX_REQUEST_BYTES = 64 * 1024; // as in card.json
    private static final long OUTCOME_TTL_MS = 24L * 60 * 60 * 1000; // as in card.json
    private static final int THREADS = 16; // as limits.max_concurrency in card.json

    private interface Handler {
        Object handle(HttpExchange exchange, String id) throws IOException, Failure;
    }

    private record Route(String method, Pattern path, Handler handler) {}

    private final List<Route> routes;

    private Main(String card, Executor executor) throws Json.BadJson {
        Object cardValue = Json.parse(card.getBytes(StandardCharsets.UTF_8));
        routes = List.of(
                route("GET", "/acp/v1/component", (exchange, id) -> cardValue),
                route("GET", "/acp/v1/health", (exchange, id) -> Map.of("status", "SERVING")),
                route("POST", "/acp/v1/execute", (exchange, id) -> executor.execute(
                        Request.read(body(exchange), exchange.getRequestHeaders().getFirst("idempotency-key")))),
                route("POST", "/acp/v1/calls/([^/]+)/cancel", (exchange, id) -> executor.cancel(id)),
                route("GET", "/acp/v1/operations/([^/]+)", Main::noOperation),
                route("POST", "/acp/v1/operations/([^/]+)/cancel", Main::noOperation));
    }

    private static Route route(String method, String path, Handler handler) {
        return new Route(method, Pattern.compile(path), handler);
    }

    private static Object noOperation(HttpExchange exchange, String id) throws Failure {
        throw new Failure(Failure.Reason.NOT_FOUND, "there is no operation " + id);
    }

    private static Object body(HttpExchange exchange) throws IOException, Failure {
        byte[] bytes = exchange.getRequestBody().readNBytes(MAX_REQUEST_BYTES + 1);
        if (bytes.length > MAX_REQUEST_BYTES) {
            throw new Failure(Failure.Reason.PAYLOAD_TOO_LARGE, "the body exceeds " + MAX_REQUEST_BYTES + " bytes");
        }
        try {
            return Json.parse(bytes);
        } catch (Json.BadJson problem) {
            throw Failure.invalid("the body is not JSON: " + problem.getMessage());
        }
    }

    private Object dispatch(HttpExchange exchange) throws IOException, Failure {
        String version = exchange.getRequestHeaders().getFirst("acp-version");
        if (version != null && !version.matches("1(\\..*)?")) {
            throw new Failure(Failure.Reason.VERSION_UNSUPPORTED, "supported acp-version: 1.0");
        }
        String allowed = "";
        for (Route route : routes) {
            Matcher match = route.path().matcher(exchange.getRequestURI().getPath());
            if (match.matches() && route.method().equals(exchange.getRequestMethod())) {
                return route.handler().handle(exchange, match.groupCount() == 0 ? "" : match.group(1));
            }
            allowed = match.matches() ? route.method() : allowed;
        }
        if (allowed.isEmpty()) {
            throw new Failure(Failure.Reason.NOT_FOUND, "there is no such path here");
        }
        exchange.getResponseHeaders().set("Allow", allowed);
        throw new Failure(Failure.Reason.METHOD_NOT_ALLOWED, "use " + allowed);
    }

    private void serve(HttpExchange exchange) throws IOException {
        int status = 200;
        Object answer;
        try {
            answer = dispatch(exchange);
        } catch (Failure failure) {
            status = failure.reason.http;
            answer = failure.body();
        } catch (RuntimeException bug) {
            bug.printStackTrace();
            status = 500;
            answer = new Failure(Failure.Reason.INTERNAL, "internal error", "UNKNOWN").body();
        }
        byte[] bytes = Json.write(answer).getBytes(StandardCharsets.UTF_8);
        exchange.getResponseHeaders().set("Content-Type", "application/json");
        try (exchange) {
            boolean head = exchange.getRequestMethod().equals("HEAD");
            exchange.sendResponseHeaders(status, head ? -1 : bytes.length);
            if (!head) {
                OutputStream out = exchange.getResponseBody();
                out.write(bytes);
            }
        }
    }

    public static void main(String[] args) throws Exception {
        // Without these a kept connection answers 40 ms late, and a slow sender holds a thread for ever.
        System.setProperty("sun.net.httpserver.nodelay", "true");
        System.setProperty("sun.net.httpserver.maxReqTime", "10");
        Path journal = Path.of(System.getenv("CARDS_JOURNAL"));
        Vault vault = new Vault(Path.of(System.getenv("CARDS_OPENING")), journal, OUTCOME_TTL_MS);
        Main main = new Main(Files.readString(Path.of(System.getenv("CARDS_CARD"))), new Executor(vault));
        int port = Integer.parseInt(System.getenv("ACP_PORT"));
        HttpServer server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), port), 128);
        ExecutorService threads = Executors.newFixedThreadPool(THREADS);
        server.setExecutor(threads);
        server.createContext("/", main::serve);
        server.start();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> server.stop(0)));
    }
}
