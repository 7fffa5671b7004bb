package org.verbena.verbs.ffm;

/** Where libibverbs is. */
public final class VerbsLibrary {
    /** The library; another file is loaded if the property {@code org.verbena.verbs.library} names one. */
    public static final NativeLibrary LIBRARY = NativeLibrary.load(
            System.getProperty("org.verbena.verbs.library", "libibverbs.so.1"),
            "Install rdma-core: apt-get install libibverbs1 ibverbs-providers, or dnf install libibverbs.");

    private VerbsLibrary() {}

    /**
     * Whether the library has a function.
     *
     * @param name C's name
     * @return false also if there is no library
     */
    public static boolean has(String name) {
        return LIBRARY.find(name).isPresent();
    }
}
