package org.verbena.verbs.ffm;

import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.invoke.MethodHandle;
import org.jspecify.annotations.Nullable;

/**
 * A handle of a C function's prototype that is linked when it is first asked for. Linking makes the JVM generate
 * classes, and a program calls few of the functions that there are. The compiler does not take it for a constant, so a
 * function that is called for each message has a {@link NativeLibrary#functionPointer} instead.
 */
public final class LazyHandle {
    private final FunctionDescriptor descriptor;
    private final Linker.Option[] options;

    /**
     * Written by the first thread that needs it, or by several: they link the same function, and a handle is immutable.
     */
    private @Nullable MethodHandle handle;

    /**
     * Links nothing yet.
     *
     * @param descriptor the C prototype
     * @param options such as {@link Errno#CAPTURE}
     */
    public LazyHandle(FunctionDescriptor descriptor, Linker.Option... options) {
        this.descriptor = descriptor;
        this.options = options.clone();
    }

    /**
     * The handle.
     *
     * @return with the function's pointer as its first argument
     */
    public MethodHandle get() {
        MethodHandle linked = handle;
        if (linked == null) {
            linked = NativeLibrary.functionPointer(descriptor, options);
            handle = linked;
        }
        return linked;
    }
}
