package org.verbena.it.environment;

import java.io.File;
import java.lang.ref.WeakReference;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/**
 * The program that is run: loads Verbena into a class loader of its own, as a container does with an application, has
 * it serve and end, and forgets the loader. Netty is in the program's own.
 */
public final class Unloading {
    private static final int ROUNDS = 4;

    private Unloading() {}

    /** The first argument is the class path of Verbena and of {@link Echo}, the second the provider. */
    public static void main(String[] arguments) throws Exception {
        List<WeakReference<ClassLoader>> loaders = new ArrayList<>();
        for (int i = 0; i < ROUNDS; i++) {
            loaders.add(round(arguments[0], arguments[1]));
        }
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(30);
        long gone;
        do {
            System.gc();
            gone = loaders.stream().filter(loader -> loader.refersTo(null)).count();
        } while (gone < ROUNDS && System.nanoTime() < end);
        System.out.println("unloaded " + gone + " of " + ROUNDS);
        System.exit(0);
    }

    private static WeakReference<ClassLoader> round(String classPath, String provider) throws Exception {
        List<URL> urls = new ArrayList<>();
        for (String entry : classPath.split(File.pathSeparator)) {
            urls.add(Path.of(entry).toUri().toURL());
        }
        try (URLClassLoader loader = new URLClassLoader(urls.toArray(URL[]::new), Unloading.class.getClassLoader())) {
            List<Throwable> thrown = new ArrayList<>();
            Thread application = new Thread(() -> {
                try {
                    loader.loadClass("org.verbena.it.environment.Echo")
                            .getMethod("echo", String.class)
                            .invoke(null, provider);
                } catch (Throwable failed) {
                    thrown.add(failed);
                }
            });
            application.setContextClassLoader(loader);
            application.start();
            application.join();
            if (!thrown.isEmpty()) {
                throw new IllegalStateException("the application failed", thrown.getFirst());
            }
            return new WeakReference<>(loader);
        }
    }
}
