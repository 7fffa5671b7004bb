package org.verbena.it;

import java.io.IOException;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.SimpleFileVisitor;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.ArrayList;
import java.util.List;

/** The files of this repository, without what builds make. */
public final class SourceTree {
    private SourceTree() {}

    public static Path root() {
        Path here = Path.of("").toAbsolutePath();
        return Files.exists(here.resolve("it/lab")) ? here : here.getParent();
    }

    /** The files whose path ends so, sorted. */
    public static List<Path> files(String ending) throws IOException {
        List<Path> files = new ArrayList<>();
        Files.walkFileTree(root(), new SimpleFileVisitor<>() {
            @Override
            public FileVisitResult preVisitDirectory(Path folder, BasicFileAttributes attributes) {
                String name = folder.getFileName().toString();
                boolean isMade = name.equals("target") || name.startsWith(".") && !folder.equals(root());
                return isMade ? FileVisitResult.SKIP_SUBTREE : FileVisitResult.CONTINUE;
            }

            @Override
            public FileVisitResult visitFile(Path file, BasicFileAttributes attributes) {
                if (file.toString().endsWith(ending)) {
                    files.add(file);
                }
                return FileVisitResult.CONTINUE;
            }
        });
        files.sort(null);
        return files;
    }
}
