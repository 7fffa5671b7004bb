package org.verbena.it;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assertions.fail;

import java.io.IOException;
import java.io.InputStream;
import java.lang.module.ModuleDescriptor;
import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.Member;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.TreeSet;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * What the exported packages of each library offer is what {@code it/api} says, so that a change of the API shows in
 * the change's diff. {@code -Dapi.renew} writes these files. {@code mvn -Pcompatibility verify} compares with a
 * release.
 */
class ApiSignaturesTest {
    private static final Path ROOT = SourceTree.root();
    private static final Path LISTS = ROOT.resolve("it/api");

    /** The folders of the modules that export something to everybody. */
    static List<String> modules() throws IOException {
        List<String> modules = new ArrayList<>();
        for (Path source : SourceTree.files("src/main/java/module-info.java")) {
            Path module = source.getParent().getParent().getParent().getParent();
            if (!packages(module).isEmpty()) {
                modules.add(ROOT.relativize(module).toString());
            }
        }
        assertThat(modules).contains("api", "verbs", "cm", "transport/core");
        return modules;
    }

    @ParameterizedTest
    @MethodSource("modules")
    void isWhatTheListSays(String module) throws Exception {
        List<String> offered = signatures(ROOT.resolve(module));
        assertThat(offered).isNotEmpty();
        Path list = LISTS.resolve(module.replace('/', '-') + ".txt");
        if (System.getProperty("api.renew") != null) {
            Files.createDirectories(LISTS);
            Files.write(list, offered);
        }
        List<String> listed = Files.exists(list) ? Files.readAllLines(list) : List.of();
        if (!listed.equals(offered)) {
            fail("the API of %s has changed; if that is meant, renew the lists by%n".formatted(module)
                    + "  mvn test -pl it -am -Dtest=ApiSignaturesTest -Dapi.renew%n".formatted()
                    + "no longer there:%n%s%nnew:%n%s".formatted(without(listed, offered), without(offered, listed)));
        }
    }

    @Test
    void noListIsLeftOfAModuleThatIsGone() throws IOException {
        try (Stream<Path> lists = Files.list(LISTS)) {
            assertThat(lists.map(LISTS::relativize).map(Path::toString))
                    .isSubsetOf(modules().stream()
                            .map(module -> module.replace('/', '-') + ".txt")
                            .toList());
        }
    }

    private static String without(List<String> lines, List<String> others) {
        List<String> left = new ArrayList<>(lines);
        left.removeAll(others);
        return String.join("\n", left);
    }

    private static List<String> packages(Path module) throws IOException {
        Path descriptor = module.resolve("target/classes/module-info.class");
        assertThat(descriptor).as("compiled").exists();
        try (InputStream in = Files.newInputStream(descriptor)) {
            return ModuleDescriptor.read(in).exports().stream()
                    .filter(exported -> !exported.isQualified())
                    .map(ModuleDescriptor.Exports::source)
                    .sorted()
                    .toList();
        }
    }

    private static List<String> signatures(Path module) throws Exception {
        List<String> lines = new ArrayList<>();
        for (String exported : packages(module)) {
            Path folder = module.resolve("target/classes").resolve(exported.replace('.', '/'));
            try (Stream<Path> files = Files.list(folder)) {
                List<String> names = files.map(file -> file.getFileName().toString())
                        .filter(name -> name.endsWith(".class") && !name.equals("package-info.class"))
                        .map(name -> name.substring(0, name.length() - ".class".length()))
                        .sorted()
                        .toList();
                for (String name : names) {
                    Class<?> type =
                            Class.forName(exported + "." + name, false, ApiSignaturesTest.class.getClassLoader());
                    if (isOffered(type)) {
                        lines.add(type.toGenericString() + ancestors(type));
                        members(type).forEach(member -> lines.add("    " + member));
                    }
                }
            }
        }
        return lines;
    }

    private static boolean isOffered(Class<?> type) {
        for (Class<?> each = type; each != null; each = each.getEnclosingClass()) {
            if ((each.getModifiers() & (Modifier.PUBLIC | Modifier.PROTECTED)) == 0
                    || each.isAnonymousClass()
                    || each.isLocalClass()) {
                return false;
            }
        }
        return true;
    }

    private static String ancestors(Class<?> type) {
        StringBuilder text = new StringBuilder();
        if (type.getGenericSuperclass() != null && type.getSuperclass() != Object.class) {
            text.append(" extends ").append(type.getGenericSuperclass().getTypeName());
        }
        Arrays.stream(type.getGenericInterfaces())
                .map(each -> " : " + each.getTypeName())
                .forEach(text::append);
        return text.toString();
    }

    /** Its own, and what it has from superclasses that nobody else sees. */
    private static TreeSet<String> members(Class<?> type) {
        TreeSet<String> members = new TreeSet<>();
        for (Class<?> each = type;
                each == type || each != null && !Modifier.isPublic(each.getModifiers());
                each = each.getSuperclass()) {
            Arrays.stream(each.getDeclaredFields())
                    .filter(ApiSignaturesTest::isOffered)
                    .map(Field::toGenericString)
                    .forEach(members::add);
            Arrays.stream(each.getDeclaredMethods())
                    .filter(ApiSignaturesTest::isOffered)
                    .map(Method::toGenericString)
                    .forEach(members::add);
            if (each == type) {
                Arrays.stream(each.getDeclaredConstructors())
                        .filter(ApiSignaturesTest::isOffered)
                        .map(Constructor::toGenericString)
                        .forEach(members::add);
            }
        }
        return members;
    }

    private static boolean isOffered(Member member) {
        return !member.isSynthetic() && (member.getModifiers() & (Modifier.PUBLIC | Modifier.PROTECTED)) != 0;
    }
}
