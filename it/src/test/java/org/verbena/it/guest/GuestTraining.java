package org.verbena.it.guest;

import java.io.File;
import java.io.IOException;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;
import org.junit.platform.engine.discovery.DiscoverySelectors;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.listeners.SummaryGeneratingListener;

/**
 * Loads on the host what the lab's tests load in the guest, for {@link GuestClasses}: finds all of them, loads
 * Verbena's classes, makes the method handles of its bindings, and runs two suites of the Channel API on the soft
 * provider.
 */
final class GuestTraining {
    private static final String[] SUITES = {"org.verbena.api.SoftShortFormTest", "org.verbena.api.SoftOneSidedTest"};

    private GuestTraining() {}

    public static void main(String[] arguments) throws Exception {
        for (String jar : System.getProperty("java.class.path").split(File.pathSeparator)) {
            loadVerbena(jar);
        }
        LabTests.all();
        LauncherDiscoveryRequestBuilder request = LauncherDiscoveryRequestBuilder.request();
        for (String suite : SUITES) {
            request.selectors(DiscoverySelectors.selectClass(suite));
        }
        SummaryGeneratingListener summary = new SummaryGeneratingListener();
        Jupiter.launcher().execute(request.build(), summary);
        System.out.println(summary.getSummary().getTestsSucceededCount() + " tests passed");
        System.exit(0);
    }

    private static void loadVerbena(String path) throws IOException {
        try (JarFile jar = new JarFile(path)) {
            for (JarEntry entry : jar.stream().toList()) {
                String name = entry.getName();
                if (name.startsWith("org/verbena/") && name.endsWith(".class")) {
                    try {
                        // A handle for a shape of call that was made here needs no class generated in the guest.
                        boolean hasHandles = name.contains("/ffm/") || name.contains("/epoll/");
                        Class.forName(
                                name.substring(0, name.length() - ".class".length())
                                        .replace('/', '.'),
                                hasHandles,
                                GuestTraining.class.getClassLoader());
                    } catch (ClassNotFoundException | LinkageError e) {
                        // Needs what tests in the guest have not either.
                        System.out.println(e);
                    }
                }
            }
        }
    }
}
