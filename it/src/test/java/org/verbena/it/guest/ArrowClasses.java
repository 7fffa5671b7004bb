package org.verbena.it.guest;

import java.io.File;
import java.net.MalformedURLException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;

/**
 * This JVM's class path once more, with the protobuf that Arrow needs before the one that gRPC's suite needs. What runs
 * there shares nothing with the rest of the JVM but the JDK's classes.
 */
public final class ArrowClasses implements AutoCloseable {
    /** Names the jar. */
    private static final String PROTOBUF = "lab.arrowProtobuf";

    private final URLClassLoader loader;

    /**
     * Loads nothing yet.
     *
     * @param more folders of classes
     */
    public ArrowClasses(Path... more) throws MalformedURLException {
        List<URL> path = new ArrayList<>();
        for (Path folder : more) {
            path.add(folder.toUri().toURL());
        }
        path.add(Path.of(System.getProperty(PROTOBUF)).toUri().toURL());
        String classPath = System.getProperty("java.class.path");
        for (String entry : Stream.of(classPath.split(File.pathSeparator)).toList()) {
            path.add(Path.of(entry).toUri().toURL());
        }
        loader = new URLClassLoader(path.toArray(URL[]::new), ClassLoader.getPlatformClassLoader());
    }

    /**
     * Makes an object and runs it, on this thread.
     *
     * @param className a class with a constructor without arguments, which implements {@link Runnable}
     */
    public void run(String className) throws ReflectiveOperationException {
        Thread thread = Thread.currentThread();
        ClassLoader before = thread.getContextClassLoader();
        thread.setContextClassLoader(loader); // services are looked up there, and threads inherit it
        try {
            ((Runnable) loader.loadClass(className).getConstructor().newInstance()).run();
        } finally {
            thread.setContextClassLoader(before);
        }
    }

    @Override
    public void close() throws java.io.IOException {
        loader.close();
    }
}
