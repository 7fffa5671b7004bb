package org.verbena.verbs.ffm;

import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;

/** A function that a library exports, or lacks. It is linked when it is first called, see {@link LazyHandle}. */
public final class NativeFunction {
    private final NativeLibrary library;
    private final String name;
    private final int since;
    private final MemorySegment address;
    private final LazyHandle handle;

    NativeFunction(
            NativeLibrary library, String name, int since, FunctionDescriptor descriptor, Linker.Option... options) {
        this.library = library;
        this.name = name;
        this.since = since;
        this.address = library.find(name).orElse(MemorySegment.NULL);
        this.handle = new LazyHandle(descriptor, options);
    }

    /**
     * Whether it can be called.
     *
     * @return false if the library, or this function in it, is missing
     */
    public boolean isPresent() {
        return address.address() != 0;
    }

    /**
     * The handle.
     *
     * @return with {@link #address} as its first argument
     * @throws UnsupportedOperationException if the library is missing, or the JVM denies native access
     */
    public MethodHandle handle() {
        if (library.unavailabilityCause() != null) {
            throw library.lacks(name, since);
        }
        return handle.get();
    }

    /**
     * Where it is.
     *
     * @return the handle's first argument
     * @throws UnsupportedOperationException if the library, or this function in it, is missing
     */
    public MemorySegment address() {
        if (address.address() == 0) {
            throw library.lacks(name, since);
        }
        return address;
    }
}
