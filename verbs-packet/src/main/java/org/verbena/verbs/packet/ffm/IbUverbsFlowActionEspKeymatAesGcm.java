package org.verbena.verbs.packet.ffm;

import java.lang.foreign.StructLayout;
import org.verbena.verbs.ffm.CStruct;

/** {@code struct ib_uverbs_flow_action_esp_keymat_aes_gcm}: a key. Source: infiniband/ib_user_ioctl_verbs.h */
public final class IbUverbsFlowActionEspKeymatAesGcm {
    public static final StructLayout LAYOUT = CStruct.struct(
            "ib_uverbs_flow_action_esp_keymat_aes_gcm",
            CStruct.U64.withName("iv"),
            CStruct.U32.withName("iv_algo"),
            CStruct.U32.withName("salt"),
            CStruct.U32.withName("icv_len"),
            CStruct.U32.withName("key_len"),
            CStruct.array(8, CStruct.U32).withName("aes_key"));

    public static final long SIZE = LAYOUT.byteSize();
    public static final long IV = CStruct.offset(LAYOUT, "iv");
    public static final long IV_ALGO = CStruct.offset(LAYOUT, "iv_algo");
    public static final long SALT = CStruct.offset(LAYOUT, "salt");
    public static final long ICV_LEN = CStruct.offset(LAYOUT, "icv_len");
    public static final long KEY_LEN = CStruct.offset(LAYOUT, "key_len");
    public static final long AES_KEY = CStruct.offset(LAYOUT, "aes_key");

    private IbUverbsFlowActionEspKeymatAesGcm() {}
}
