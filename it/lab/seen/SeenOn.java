import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/**
 * Writes the third column of the tables in {@code docs/coverage.md} and {@code docs/coverage-librdmacm.md}, "seen on",
 * out of what {@code CallRecorder} wrote down: the devices that a function was called on, each with the first test by
 * name.
 *
 * <p>Arguments: the folder {@code docs}, then folders of records in the order of the kernels; {@code FOLDER=LABEL} adds
 * the label to devices that only this folder has seen.
 */
public final class SeenOn {
    private static final Pattern ROW = Pattern.compile("\\| `(\\w+)` \\| (.*?) \\| (.*?) \\|(.*)");
    private static final Pattern JAVA = Pattern.compile("`(\\w+\\.\\w+)`");
    private static final List<String> DEVICES = List.of("rxe", "siw", "stub", "-");

    private static final Pattern BOUND = Pattern.compile("^    public static \\w+ (\\w+)\\(", Pattern.MULTILINE);
    private static final List<String> BINDINGS = List.of(
            "verbs/target/generated-sources/bindings/org/verbena/verbs/ffm/LibIbverbs.java",
            "verbs/target/generated-sources/bindings/org/verbena/verbs/ffm/VerbsOps.java",
            "verbs-packet/target/generated-sources/bindings/org/verbena/verbs/packet/ffm/PacketOps.java",
            "cm/target/generated-sources/bindings/org/verbena/cm/ffm/RdmaCm.java");

    /** Functions with a binding of their own: the Java method that calls one of them may call others. */
    private final Set<String> bound = new TreeSet<>();

    /** By C function, or by Java method, the tests of each device. */
    private final Map<String, Map<String, Set<String>>> seen = new HashMap<>();

    private SeenOn() {}

    public static void main(String[] arguments) throws IOException {
        Path docs = Path.of(arguments[0]);
        SeenOn known = new SeenOn();
        for (String binding : BINDINGS) {
            Path source = docs.toAbsolutePath().resolveSibling(binding);
            String type = source.getFileName().toString().replace(".java", "");
            BOUND.matcher(Files.readString(source))
                    .results()
                    .forEach(method -> known.bound.add(nameInC(type + "." + method.group(1))));
        }
        for (int i = 1; i < arguments.length; i++) {
            String[] folder = arguments[i].split("=");
            known.read(Path.of(folder[0]), folder.length > 1 ? folder[1] : "");
        }
        known.rewrite(docs.resolve("coverage.md"));
        known.rewrite(docs.resolve("coverage-librdmacm.md"));
    }

    private void read(Path folder, String label) throws IOException {
        Map<String, Map<String, Set<String>>> found = new HashMap<>();
        try (Stream<Path> files = Files.walk(folder)) {
            files.filter(file -> file.toString().endsWith(".txt")).forEach(file -> {
                try {
                    for (String line : Files.readAllLines(file)) {
                        String[] part = line.split(" ");
                        // A line that a JVM did not finish.
                        if (part.length == 4 && part[3].endsWith("Test")) {
                            if (!part[0].equals("-")) {
                                add(found, nameInC(part[0]), part[2], part[3]);
                            }
                            add(found, part[1], part[2], part[3]);
                        }
                    }
                } catch (IOException e) {
                    throw new UncheckedIOException(e);
                }
            });
        }
        found.forEach((function, devices) -> devices.forEach((device, tests) -> {
            Map<String, Set<String>> all = seen.computeIfAbsent(function, first -> new TreeMap<>());
            if (all.containsKey(device)) {
                all.get(device).addAll(tests);
            } else {
                all.put(label.isEmpty() ? device : device + label, tests);
            }
        }));
    }

    private static void add(Map<String, Map<String, Set<String>>> to, String function, String device, String test) {
        to.computeIfAbsent(function, first -> new TreeMap<>())
                .computeIfAbsent(device, first -> new TreeSet<>())
                .add(test);
    }

    /** {@code LibIbverbs.allocPd} is {@code ibv_alloc_pd}, {@code RdmaCm.createId} is {@code rdma_create_id}. */
    private static String nameInC(String method) {
        String[] part = method.split("\\.");
        String snake = part[1].replaceAll("([A-Z])", "_$1").toLowerCase(java.util.Locale.ROOT);
        return (part[0].equals("RdmaCm") ? "rdma_" : "ibv_") + snake;
    }

    private void rewrite(Path page) throws IOException {
        List<String> lines = new ArrayList<>();
        boolean isTable = false;
        for (String line : Files.readAllLines(page)) {
            if (line.startsWith("| C |")) {
                isTable = line.contains("| seen on |");
            }
            Matcher row = ROW.matcher(line);
            if (isTable && row.matches() && JAVA.matcher(row.group(2)).find()) {
                lines.add("| `" + row.group(1) + "` | " + row.group(2) + " | "
                        + describe(row.group(1), row.group(2)) + " |" + row.group(4));
            } else {
                lines.add(line);
            }
        }
        Files.write(page, lines);
    }

    private String describe(String function, String java) {
        Map<String, Set<String>> devices = seen.get(function);
        if (devices == null) {
            devices = new TreeMap<>();
        }
        if (devices.isEmpty() && !bound.contains(function)) {
            Matcher method = JAVA.matcher(java);
            while (method.find()) {
                Map<String, Set<String>> of = seen.getOrDefault(method.group(1), Map.of());
                for (Map.Entry<String, Set<String>> each : of.entrySet()) {
                    devices.computeIfAbsent(each.getKey(), first -> new TreeSet<>()).addAll(each.getValue());
                }
            }
        }
        if (devices.isEmpty() && function.startsWith("rdma_")) {
            // Closing goes to libibverbs itself.
            devices = seen.getOrDefault(function.replaceFirst("rdma_", "ibv_"), Map.of());
        }
        List<String> cells = new ArrayList<>();
        for (String device : DEVICES) {
            for (Map.Entry<String, Set<String>> each : devices.entrySet()) {
                boolean isIt = each.getKey().equals(device) || each.getKey().startsWith(device + " ");
                if (isIt && !(device.equals("-") && !cells.isEmpty())) {
                    String test = each.getValue().iterator().next();
                    cells.add(device.equals("-") ? "no device: " + test : each.getKey() + ": " + test);
                }
            }
        }
        return cells.isEmpty() ? "nowhere" : String.join(", ", cells);
    }
}
