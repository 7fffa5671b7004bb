package org.verbena.verbs.ffm;

import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.invoke.MethodHandle;

/**
 * What C's inline functions do to the locks of structs that providers leave blank. Source: pthread_mutex_init(3),
 * pthread_cond_init(3)
 */
@SuppressWarnings("restricted") // binds functions of the C library
public final class Pthreads {
    private static final MethodHandle MUTEX_INIT = Linker.nativeLinker()
            .downcallHandle(
                    Linker.nativeLinker().defaultLookup().findOrThrow("pthread_mutex_init"),
                    FunctionDescriptor.of(CStruct.I32, CStruct.PTR, CStruct.PTR));

    private static final MethodHandle COND_INIT = Linker.nativeLinker()
            .downcallHandle(
                    Linker.nativeLinker().defaultLookup().findOrThrow("pthread_cond_init"),
                    FunctionDescriptor.of(CStruct.I32, CStruct.PTR, CStruct.PTR));

    private Pthreads() {}

    /** {@code int pthread_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *attr);}; without attributes */
    public static void initializeMutex(long mutex) {
        try {
            if ((int) MUTEX_INIT.invokeExact(mutex, 0L) != 0) {
                throw new OutOfMemoryError("pthread_mutex_init");
            }
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    /** {@code int pthread_cond_init(pthread_cond_t *cond, const pthread_condattr_t *attr);}; without attributes */
    public static void initializeCondition(long condition) {
        try {
            if ((int) COND_INIT.invokeExact(condition, 0L) != 0) {
                throw new OutOfMemoryError("pthread_cond_init");
            }
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }
}
