package org.verbena.it;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/**
 * Java lets a program, or a library that has the class's name from its configuration, call a static method of a
 * superclass on the subclass: {@code RdmaSocketFactory.getDefault()} would make plain TCP. So no public class inherits
 * a static factory, unless it is listed here with the reason.
 */
class InheritedFactoriesTest {
    private static final Path ROOT = SourceTree.root();

    /** Of a superclass, and why what it makes deceives nobody. */
    private static final Map<String, String> HARMLESS = Map.of(
            "org.jgroups.protocols.TPConfig.createBundler", "makes no transport",
            "java.net.InetSocketAddress.createUnresolved", "makes an address, and says of which type",
            "java.nio.channels.spi.SelectorProvider.provider", "of a class that is not exported");

    /** The public classes of all modules that are on this one's class path. */
    private static List<Class<?>> types(TreeSet<String> modules) throws IOException {
        List<Class<?>> types = new ArrayList<>();
        for (Path pom : SourceTree.files("pom.xml")) {
            Path classes = pom.resolveSibling("target/classes");
            if (!Files.isDirectory(classes.resolve("org/verbena"))) {
                continue;
            }
            try (Stream<Path> files = Files.walk(classes.resolve("org/verbena"))) {
                for (Path file :
                        files.filter(each -> each.toString().endsWith(".class")).toList()) {
                    String path = classes.relativize(file).toString();
                    String name =
                            path.substring(0, path.length() - ".class".length()).replace('/', '.');
                    if (name.contains(".internal.") || name.endsWith("package-info")) {
                        continue;
                    }
                    try {
                        Class<?> type = Class.forName(name, false, InheritedFactoriesTest.class.getClassLoader());
                        modules.add(ROOT.relativize(pom.getParent()).toString());
                        if (Modifier.isPublic(type.getModifiers())) {
                            types.add(type);
                        }
                    } catch (ClassNotFoundException | NoClassDefFoundError elsewhere) {
                        System.out.println("not on the class path: " + name);
                    }
                }
            }
        }
        return types;
    }

    private static boolean isInheritedFactory(Class<?> type, Method method) {
        Class<?> owner = method.getDeclaringClass();
        Class<?> made = method.getReturnType();
        return Modifier.isStatic(method.getModifiers())
                && !type.isEnum()
                && !owner.getName().startsWith("org.verbena.")
                && made != Object.class
                && (made.isAssignableFrom(type) || made.getPackage() == owner.getPackage())
                && !isHidden(type, method);
    }

    /** Also by one that says of a narrower type what it makes: reflection then has both. */
    private static boolean isHidden(Class<?> type, Method method) {
        for (Class<?> each = type; each != method.getDeclaringClass(); each = each.getSuperclass()) {
            try {
                each.getDeclaredMethod(method.getName(), method.getParameterTypes());
                return true;
            } catch (NoSuchMethodException further) {
                // perhaps in the next
            }
        }
        return false;
    }

    @Test
    void noStaticFactoryIsInherited() throws IOException {
        TreeSet<String> modules = new TreeSet<>();
        List<String> inherited = new ArrayList<>();
        TreeSet<String> harmless = new TreeSet<>();
        for (Class<?> type : types(modules)) {
            for (Method method : type.getMethods()) {
                if (isInheritedFactory(type, method)) {
                    String what = method.getDeclaringClass().getName() + "." + method.getName();
                    if (HARMLESS.containsKey(what)) {
                        harmless.add(what);
                    } else {
                        inherited.add(type.getName() + " inherits " + what);
                    }
                }
            }
        }
        assertThat(modules).contains("api", "adapters/grpc", "adapters/jgroups", "adapters/ratis", "adapters/sockets");
        assertThat(inherited).isEmpty();
        assertThat(harmless).as("what is listed is inherited").isEqualTo(new TreeSet<>(HARMLESS.keySet()));
    }
}
