package org.verbena.verbs.ffm;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * A shared library that may be missing. Absence is a value: {@link #unavailabilityCause()} says what to install, and
 * nothing is thrown while classes load.
 */
@SuppressWarnings("restricted") // loading libraries and making downcalls is what this class is for
public final class NativeLibrary {
    private static final Linker LINKER = Linker.nativeLinker();

    /** The C library that the JVM itself is linked with. */
    public static final NativeLibrary C = new NativeLibrary("the C library", LINKER.defaultLookup(), null);

    private final String soname;
    private final @Nullable SymbolLookup symbols;
    private final @Nullable Throwable unavailabilityCause;

    private NativeLibrary(String soname, @Nullable SymbolLookup symbols, @Nullable Throwable unavailabilityCause) {
        this.soname = soname;
        this.symbols = symbols;
        this.unavailabilityCause = unavailabilityCause;
    }

    /**
     * Loads a library for the life of the process.
     *
     * @param soname name with version, as the dynamic loader knows it: {@code libibverbs.so.1}
     * @param remedy what to do where it is missing, as a sentence
     * @return the library, loaded or not
     */
    public static NativeLibrary load(String soname, String remedy) {
        try {
            return new NativeLibrary(soname, SymbolLookup.libraryLookup(soname, Arena.global()), null);
        } catch (IllegalArgumentException missing) {
            return new NativeLibrary(
                    soname,
                    null,
                    new UnsatisfiedLinkError(soname + " cannot be loaded (" + missing.getMessage() + "). " + remedy));
        } catch (IllegalCallerException denied) {
            return denied(soname, NativeLibrary.class.getModule());
        }
    }

    /**
     * A library that a module may not use.
     *
     * @param soname its name
     * @param module that the JVM denies native access
     * @return the library, not loaded; the cause says which flag to set
     */
    public static NativeLibrary denied(String soname, Module module) {
        return new NativeLibrary(
                soname,
                null,
                new UnsatisfiedLinkError("native access is denied"
                        + (module.isNamed() ? " to the module " + module.getName() : "")
                        + ": start the JVM with --enable-native-access="
                        + (module.isNamed()
                                ? "org.verbena.verbs, and of org.verbena.cm, org.verbena.transport and"
                                        + " org.verbena.transport.shm those that the program has, all in one list with commas"
                                : "ALL-UNNAMED")));
    }

    /**
     * Why the library cannot be used.
     *
     * @return null if it can
     */
    public @Nullable Throwable unavailabilityCause() {
        return unavailabilityCause;
    }

    /**
     * Finds a symbol.
     *
     * @param name as exported
     * @return empty if the library, or this symbol in it, is missing
     */
    public Optional<MemorySegment> find(String name) {
        return symbols == null ? Optional.empty() : symbols.find(name);
    }

    /**
     * Links a function that every version has.
     *
     * @param name as exported
     * @param descriptor its C prototype
     * @param options such as {@link Errno#CAPTURE}
     * @return the handle
     * @throws UnsatisfiedLinkError the library, or this function in it, is missing
     */
    public MethodHandle required(String name, FunctionDescriptor descriptor, Linker.Option... options) {
        MemorySegment address = find(name).orElseThrow(() -> new UnsatisfiedLinkError(soname + " has no " + name));
        return LINKER.downcallHandle(address, descriptor, options);
    }

    /**
     * A function that may be missing.
     *
     * @param name as exported
     * @param since the first rdma-core that has it, 0 if all have
     * @param descriptor its C prototype
     * @param options such as {@link Errno#CAPTURE}
     * @return the function; calling one that is missing throws {@link UnsupportedOperationException} with its name
     */
    public NativeFunction functionOrThrower(
            String name, int since, FunctionDescriptor descriptor, Linker.Option... options) {
        return new NativeFunction(this, name, since, descriptor, options);
    }

    /** Why a function cannot be called. */
    UnsupportedOperationException lacks(String name, int since) {
        Throwable cause = unavailabilityCause;
        if (cause != null) {
            return new UnsupportedOperationException(name + " cannot be called: " + cause.getMessage());
        }
        return new UnsupportedOperationException(soname + " has no function " + name
                + (since == 0
                        ? ": it is another library"
                        : ": it came with rdma-core " + since + "; install that or a newer one"));
    }

    /**
     * Rethrows what a handle's invokeExact threw. C throws nothing, so it is the linker's refusal of an argument, or
     * {@link NativeFunction#address}'s of a function that is missing.
     *
     * @param thrown what was caught
     * @return never: for {@code throw unexpected(t)}
     */
    public static RuntimeException unexpected(Throwable thrown) {
        if (thrown instanceof RuntimeException unchecked) {
            throw unchecked;
        }
        if (thrown instanceof Error error) {
            throw error;
        }
        throw new IllegalStateException("a native call threw a checked exception", thrown);
    }

    /**
     * Makes an unbound handle, for functions that are called through a pointer; the pointer is its first argument.
     *
     * @param descriptor its C prototype
     * @param options such as {@link Errno#CAPTURE}
     * @return the handle
     */
    public static MethodHandle functionPointer(FunctionDescriptor descriptor, Linker.Option... options) {
        return LINKER.downcallHandle(descriptor, options);
    }

    @Override
    public String toString() {
        return soname;
    }
}
