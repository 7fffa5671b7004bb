import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * Writes the classes of an {@code ffm} package from a table of C's structs and functions: {@code java Bindings.java
 * TABLES FOLDER}. The build runs it before it compiles; a test asks the C compiler about every struct. A table has
 *
 * <pre>
 * package NAME                      of all its classes
 * header infiniband/verbs.h         where what follows is declared
 * struct TAG: what it is            a class with the layout, and the offset of each member; below it, indented:
 *   TYPE NAME                         u8 u16 u32 i32 u64 be16 be32 be64 size enum ptr pthread_mutex pthread_cond,
 *                                     or a struct's tag
 *   TYPE NAME[N]                      an array
 *   union [NAME], struct [NAME]       with members of their own below
 *   constant NAME = EXPRESSION        anything else
 * list CLASS: what it is            a class with the layouts of all structs before it
 * functions CLASS LIBRARY: ...      a class with functions that a library exports; LIBRARY is a constant of Java
 * pointers CLASS: ...               a class with functions that are called through a pointer, their first argument
 *   [WORD ...] PROTOTYPE              in C. Words: errno (captured), negated (a failure is returned as the errno below
 *                                     zero), critical; "since N", the first rdma-core whose library has it; "as NAME"
 *                                     if Java's name is not C's without its prefix. The handle of a function is linked
 *                                     when it is first called, unless it is eager; that of a pointer at once, unless
 *                                     it is lazy. What is linked at once is a constant for Java's compiler
 * </pre>
 *
 * A line that begins with {@code #} is a comment, one that ends with a backslash goes on in the next.
 */
final class Bindings {
    private static final Pattern PROTOTYPE = Pattern.compile("(.*?)(\\w+)\\((.*)\\);");
    private static final Pattern WORD = Pattern.compile("(errno|negated|critical|eager|lazy|since \\d+|as \\w+) ");
    private static final Pattern PARAMETER = Pattern.compile("(.*?)(\\w+)(\\[\\d*])?");
    private static final Pattern MEMBER = Pattern.compile("(\\w+) (\\w+)(?:\\[(\\d+)])?");
    private static final Pattern PREFIX = Pattern.compile("^_?(?:ibv|rdma)_");
    private static final Set<String> PRIMITIVES = Set.of(
            "u8", "u16", "u32", "i32", "u64", "be16", "be32", "be64", "size", "enum", "ptr", "pthread_mutex",
            "pthread_cond");

    /** The types of prototypes that are no pointers, as a layout of CStruct and as Java's type. */
    private static final Map<String, String[]> TYPES = new LinkedHashMap<>();

    static {
        for (String type : List.of("int", "unsigned int", "uint32_t", "__be32", "mode_t", "socklen_t")) {
            TYPES.put(type, new String[] {"U32", "int"});
        }
        for (String type : List.of("uint16_t", "__be16")) {
            TYPES.put(type, new String[] {"U16", "short"});
        }
        for (String type : List.of("uint64_t", "__be64", "off_t", "nfds_t")) {
            TYPES.put(type, new String[] {"U64", "long"});
        }
        TYPES.put("uint8_t", new String[] {"U8", "byte"});
        TYPES.put("size_t", new String[] {"SIZE", "long"});
        TYPES.put("ssize_t", new String[] {"SIZE", "long"});
        TYPES.put("void", new String[] {"", "void"});
    }

    private final List<String> lines;
    private final Path folder;
    private final Set<Path> written;
    private final List<String> structs = new ArrayList<>();
    private String name = "";
    private String header = "";
    private int next;

    private Bindings(Path table, Path folder, Set<Path> written) throws IOException {
        String text = Files.readString(table).replace("\\\n", " ");
        this.lines = text.lines()
                .filter(line -> !line.isBlank() && !line.startsWith("#"))
                .toList();
        this.folder = folder;
        this.written = written;
    }

    public static void main(String[] arguments) throws IOException {
        Path folder = Path.of(arguments[1]);
        Set<Path> written = new HashSet<>();
        try (DirectoryStream<Path> tables = Files.newDirectoryStream(Path.of(arguments[0]), "*.txt")) {
            for (Path table : tables) {
                new Bindings(table, folder, written).write();
            }
        }
        try (Stream<Path> found = Files.walk(folder)) {
            for (Path stale : found.filter(file -> Files.isRegularFile(file) && !written.contains(file)).toList()) {
                Files.delete(stale);
            }
        }
    }

    private void write() throws IOException {
        while (next < lines.size()) {
            String line = lines.get(next++);
            String[] words = line.split("[ :]", 3);
            String document = line.substring(line.indexOf(": ") + 2).replaceAll("\\s+", " ");
            switch (words[0]) {
                case "package" -> name = words[1];
                case "header" -> header = line.substring("header ".length());
                case "struct" -> struct(words[1], document);
                case "list" -> list(words[1], document);
                case "functions" -> functions(words[1], words[2].split(":")[0], document);
                case "pointers" -> functions(words[1], null, document);
                default -> throw new IllegalArgumentException(line);
            }
        }
    }

    // ---- structs

    private void struct(String tag, String document) throws IOException {
        String type = camel("_" + tag);
        structs.add(type);
        List<String> constants = new ArrayList<>();
        List<String> others = new ArrayList<>();
        String members = members(1, "", constants, others);
        StringBuilder java = new StringBuilder();
        java.append("    public static final StructLayout LAYOUT = CStruct.struct(\n            \"")
                .append(tag)
                .append("\",\n")
                .append(members)
                .append(");\n\n    public static final long SIZE = LAYOUT.byteSize();\n");
        constants.forEach(java::append);
        others.forEach(java::append);
        java.append("\n    private ").append(type).append("() {}\n");
        write(type, "{@code struct " + tag + "}: " + document, java.toString());
    }

    /** The members at one depth, as arguments of the layout; takes their lines. */
    private String members(int depth, String path, List<String> constants, List<String> others) {
        String indent = "    ".repeat(depth + 2);
        List<String> layouts = new ArrayList<>();
        while (next < lines.size() && depth(lines.get(next)) == depth) {
            String line = lines.get(next++).strip();
            if (line.startsWith("constant ")) {
                others.add("    public static final long " + line.substring("constant ".length()) + ";\n");
                continue;
            }
            String[] group = line.split(" ");
            String layout;
            String member;
            if (group[0].equals("union") || group[0].equals("struct")) {
                member = group.length > 1 ? group[1] : "";
                addOffset(path, member, constants);
                String below = path + (member.isEmpty() ? "" : member + ".");
                layout = "CStruct." + (group[0].equals("union") ? "union" : "group") + "(\n"
                        + members(depth + 1, below, constants, others) + ")";
            } else {
                Matcher plain = MEMBER.matcher(line);
                if (!plain.matches()) {
                    throw new IllegalArgumentException(line);
                }
                member = plain.group(2);
                addOffset(path, member, constants);
                String type = plain.group(1);
                layout = PRIMITIVES.contains(type)
                        ? "CStruct." + type.toUpperCase(Locale.ROOT)
                        : camel("_" + type) + ".LAYOUT";
                if (plain.group(3) != null) {
                    layout = "CStruct.array(" + plain.group(3) + ", " + layout + ")";
                }
            }
            layouts.add(indent + layout + (member.isEmpty() ? "" : ".withName(\"" + member + "\")"));
        }
        return String.join(",\n", layouts);
    }

    private static void addOffset(String path, String member, List<String> constants) {
        if (member.isEmpty()) {
            return;
        }
        String constant = Stream.of((path + member).split("\\."))
                .map(part -> part.replaceAll("^_+", ""))
                .collect(Collectors.joining("_"))
                .toUpperCase(Locale.ROOT);
        constants.add("    public static final long " + (constant.equals("SIZE") ? "SIZE_MEMBER" : constant)
                + " = CStruct.offset(LAYOUT, \"" + path + member + "\");\n");
    }

    private void list(String type, String document) throws IOException {
        write(
                type,
                document,
                "    public static final List<GroupLayout> ALL = List.of(\n"
                        + structs.stream()
                                .map(struct -> "            " + struct + ".LAYOUT")
                                .collect(Collectors.joining(",\n"))
                        + ");\n\n    private " + type + "() {}\n");
    }

    // ---- functions

    private void functions(String type, String library, String document) throws IOException {
        StringBuilder java = new StringBuilder();
        while (next < lines.size() && depth(lines.get(next)) == 1) {
            function(java, library, lines.get(next++).strip());
        }
        java.append("    private ").append(type).append("() {}\n");
        write(type, document, java.toString());
    }

    private static void function(StringBuilder java, String library, String line) {
        Map<String, String> words = new LinkedHashMap<>();
        String prototype = line.replaceAll("\\s+", " ");
        for (Matcher word = WORD.matcher(prototype); word.lookingAt(); word = WORD.matcher(prototype)) {
            String[] named = word.group(1).split(" ");
            words.put(named[0], named[named.length - 1]);
            prototype = prototype.substring(word.end());
        }
        Matcher c = PROTOTYPE.matcher(prototype);
        if (!c.matches()) {
            throw new IllegalArgumentException(line);
        }
        String[] returned = type(c.group(1));
        List<String> layouts = new ArrayList<>();
        List<String> parameters = new ArrayList<>();
        List<String> values = new ArrayList<>();
        boolean isVoid = returned[1].equals("void");
        if (!isVoid) {
            layouts.add("CStruct." + returned[0]);
        }
        boolean isNegated = words.containsKey("negated");
        boolean hasErrno = isNegated || words.containsKey("errno");
        String options = (hasErrno ? ", Errno.CAPTURE" : "")
                + (words.containsKey("critical") ? ", Linker.Option.critical(false)" : "");
        if (hasErrno) {
            parameters.add("MemorySegment errno");
            values.add("errno");
        }
        if (!c.group(3).isBlank() && !c.group(3).equals("void")) {
            int fixed = 0;
            for (String parameter : c.group(3).split(",")) {
                if (parameter.strip().startsWith("...")) {
                    options += ", Linker.Option.firstVariadicArg(" + fixed + ")";
                }
                fixed++;
                Matcher named = PARAMETER.matcher(parameter.replace("...", "").strip());
                if (!named.matches()) {
                    throw new IllegalArgumentException(line);
                }
                String[] type = named.group(3) != null ? type("*") : type(named.group(1));
                layouts.add("CStruct." + type[0]);
                parameters.add(type[1] + " " + camel(named.group(2)));
                values.add(camel(named.group(2)));
            }
        }
        String method = words.getOrDefault("as", camel(PREFIX.matcher(c.group(2)).replaceFirst("")));
        String constant = method.replaceAll("([a-z0-9])([A-Z])", "$1_$2").toUpperCase(Locale.ROOT);
        String descriptor = "FunctionDescriptor." + (isVoid ? "ofVoid(" : "of(") + String.join(", ", layouts) + ")"
                + options;
        String since = words.getOrDefault("since", "0");
        String type;
        String made;
        String handle = constant;
        if (library == null) {
            boolean isLazy = words.containsKey("lazy");
            type = isLazy ? "LazyHandle" : "MethodHandle";
            made = isLazy ? "new LazyHandle(" : "NativeLibrary.functionPointer(";
            handle += isLazy ? ".get()" : "";
            parameters.addFirst("MemorySegment function");
            values.addFirst("function");
        } else if (words.containsKey("eager")) {
            type = "MethodHandle";
            made = library + ".required(\"" + c.group(2) + "\",";
        } else {
            type = "NativeFunction";
            made = library + ".functionOrThrower(\"" + c.group(2) + "\", " + since + ",";
            handle += ".handle()";
            values.addFirst(constant + ".address()");
        }
        String call = handle + ".invokeExact(" + String.join(", ", values) + ")";
        if (!isVoid) {
            call = "(" + returned[1] + ") " + call;
            call = isNegated ? "return Errno.negated(" + call + ", errno)" : "return " + call;
        }
        String document = "{@code " + prototype + "}" + (since.equals("0") ? "" : ", of rdma-core " + since);
        java.append("""
                    private static final %s %s =
                            %s
                                    %s);

                %s    public static %s %s(%s) {
                        try {
                            %s;
                        } catch (Throwable thrown) {
                            throw NativeLibrary.unexpected(thrown);
                        }
                    }

                """.formatted(
                        type,
                        constant,
                        made,
                        descriptor,
                        comment("    ", document),
                        returned[1],
                        method,
                        String.join(", ", parameters),
                        call));
    }

    private static String[] type(String c) {
        String type = c.replace("const ", "").strip();
        if (type.contains("*")) {
            return new String[] {"PTR", "long"};
        }
        String[] known = TYPES.get(type.startsWith("enum ") ? "int" : type);
        if (known == null) {
            throw new IllegalArgumentException(c);
        }
        return known;
    }

    // ---- files

    private void write(String type, String document, String body) throws IOException {
        String imports = Stream.of(
                        "java.lang.foreign.FunctionDescriptor",
                        "java.lang.foreign.GroupLayout",
                        "java.lang.foreign.Linker",
                        "java.lang.foreign.MemorySegment",
                        "java.lang.foreign.StructLayout",
                        "java.lang.invoke.MethodHandle",
                        "java.util.List")
                .filter(imported -> Pattern.compile("\\b" + imported.substring(imported.lastIndexOf('.') + 1) + "\\b")
                        .matcher(body)
                        .find())
                .map(imported -> "import " + imported + ";\n")
                .collect(Collectors.joining());
        String shared = name.equals("org.verbena.verbs.ffm") ? "" : "import org.verbena.verbs.ffm.*;\n";
        String source = header.isEmpty() ? "" : " Source: " + header;
        String text = "package " + name + ";\n\n" + imports + shared + "\n" + comment("", document + source)
                + "public final class " + type + " {\n" + body + "}\n";
        Path file = Files.createDirectories(folder()).resolve(type + ".java");
        written.add(file);
        if (!Files.exists(file) || !Files.readString(file).equals(text)) { // else nothing has to be compiled again
            Files.writeString(file, text);
        }
    }

    /** Javadoc, wrapped. */
    private static String comment(String indent, String text) {
        int width = 120 - indent.length() - " * ".length();
        if (text.length() + " */".length() < width) {
            return indent + "/** " + text + " */\n";
        }
        String lines = text.replaceAll("(.{1," + width + "})(?: |$)", indent + " * $1\n");
        return indent + "/**\n" + lines + indent + " */\n";
    }

    private Path folder() {
        return folder.resolve(name.replace('.', '/'));
    }

    /** How far a line is indented, in steps of two spaces. */
    private static int depth(String line) {
        return (line.length() - line.stripLeading().length()) / 2;
    }

    /** C's name in Java's way; what follows an underscore at the beginning is a capital as well. */
    private static String camel(String c) {
        StringBuilder java = new StringBuilder();
        boolean isFirst = !c.startsWith("_");
        for (String part : c.split("_")) {
            if (!part.isEmpty()) {
                java.append(isFirst ? part : Character.toUpperCase(part.charAt(0)) + part.substring(1));
                isFirst = false;
            }
        }
        return java.toString();
    }
}
