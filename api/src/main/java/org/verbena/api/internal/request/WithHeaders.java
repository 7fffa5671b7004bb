package org.verbena.api.internal.request;

import java.util.function.Consumer;
import org.verbena.api.service.Metadata;

/**
 * An operation that can send headers.
 *
 * @param <T> the result
 */
public interface WithHeaders<T> extends Operation<T> {
    /** What goes with it. */
    Headers headers();

    /**
     * The same with other headers.
     *
     * @param replied gets the metadata of the reply, if there is a reply, before the result is there
     */
    WithHeaders<T> with(Headers others, Consumer<Metadata> replied);
}
